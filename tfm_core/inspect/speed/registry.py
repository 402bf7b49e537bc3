"""The comparisons by name, with their words and where they make sense; torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tfm_core.config import Experiment, TextTaskConfig
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.precisions import PRECISIONS

_HERE = "tfm_core.inspect.speed"


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """One way of making training fast.

    sides: name -> label, the reference first. code: label -> ``module:function`` to show. module,
    function: the generator of cases. x_title: the axis of a curve, empty for a plain pair. clock:
    ``cpu`` counts CPU-seconds, ``wall`` waiting. seconds: roughly how long it takes.
    reason_against: why it makes no sense for an experiment on a device, or None.
    """

    label: str
    help: str
    sides: Mapping[str, str]
    code: Mapping[str, str]
    module: str
    function: str = "cases"
    x_title: str = ""
    clock: Literal["cpu", "wall"] = "cpu"
    seconds: int = 15
    limit: float = 90.0
    needs_consent: bool = False
    reason_against: Callable[[Experiment, str], str | None] | None = None

    def why_not(self, experiment: Experiment, device: str) -> str | None:
        """Return why it makes no sense for an experiment on a device; None where it does."""
        return None if self.reason_against is None else self.reason_against(experiment, device)


def _needs_attention(experiment: Experiment, device: str) -> str | None:
    if experiment.model.has_blocks:
        return None
    return N_("This model has no multi-head attention.")


def _needs_blocks(experiment: Experiment, device: str) -> str | None:
    if experiment.model.has_blocks:
        return None
    return N_("This needs Transformer blocks; choose a Transformer.")


def _needs_pictures(experiment: Experiment, device: str) -> str | None:
    if experiment.task.class_names:
        return None
    return N_("This needs patches; choose a Vision Transformer.")


def _needs_plain_data(experiment: Experiment, device: str) -> str | None:
    task = experiment.task
    if task.class_names or isinstance(task, TextTaskConfig):
        return None
    return N_("This needs a task with pictures or sentence pairs.")


def _needs_cores(experiment: Experiment, device: str) -> str | None:
    from tfm_core.training.devices import usable_cores

    if device != "cpu":
        return N_("Threads matter only on the CPU.")
    if usable_cores() == 1:
        return N_("This process may use only one core.")
    return None


def _needs_gpu(experiment: Experiment, device: str) -> str | None:
    if device != "cpu":
        return None
    from tfm_core.training.devices import devices

    there = [one for one in devices() if one.available and one.name != "cpu"]
    if there:
        return N_("To compare both, choose {label} on the Train page.", label=there[0].label)
    missing = next(one for one in devices() if one.name == "cuda:0")
    return N_("This machine has no GPU to compare with. {reason}", reason=missing.reason)


def _needs_compiler(experiment: Experiment, device: str) -> str | None:
    from tfm_core.training.compiling import why_no_compiler

    return why_no_compiler(device)


COMPARISONS: dict[str, BenchmarkComparison] = {
    "attention": BenchmarkComparison(
        N_("Attention: explicit or fused"),
        N_("softmax(q kᵀ) v step by step, or one call of scaled_dot_product_attention."),
        {
            "explicit": N_("Explicit"),
            "einsum": N_("Explicit, two einsums"),
            "math": N_("Fused, math back end"),
            "fused": N_("Fused, PyTorch chooses the back end"),
        },
        {
            "Explicit": f"{_HERE}.explicit:explicit_attention",
            N_("Two einsums"): f"{_HERE}.explicit:einsum_attention",
            N_("Fused"): "tfm_core.layers.attention:fused_attention",
        },
        f"{_HERE}.explicit",
        reason_against=_needs_attention,
    ),
    "checkpointing": BenchmarkComparison(
        N_("Gradient checkpointing"),
        Paragraph("speed/checkpointing-help"),
        {"plain": N_("Everything kept"), "checkpointed": N_("Blocks recomputed")},
        {
            "Everything kept": f"{_HERE}.passes:plain_pass",
            "Blocks recomputed": f"{_HERE}.passes:checkpointed",
        },
        f"{_HERE}.passes",
        "checkpointing_cases",
        reason_against=_needs_blocks,
    ),
    "precision": BenchmarkComparison(
        N_("16 bits: autocast"),
        N_("Matrix products in bf16 or fp16, not fp32."),
        {name: each.label for name, each in PRECISIONS.items()},
        {
            "Single precision": f"{_HERE}.passes:fp32_pass",
            "Autocast": f"{_HERE}.passes:autocast_pass",
        },
        f"{_HERE}.passes",
        "precision_cases",
    ),
    "batch": BenchmarkComparison(
        N_("Batch size"),
        N_("Examples per second, from one to twice your batch."),
        {"batch": N_("Forward and backward")},
        {
            "One by one": f"{_HERE}.passes:one_by_one",
            "A batch": f"{_HERE}.passes:one_batch",
        },
        f"{_HERE}.passes",
        "batch_cases",
        x_title=N_("batch size (examples)"),
        seconds=20,
    ),
    "length": BenchmarkComparison(
        N_("Sequence length"),
        N_("One block on 16 to 1,024 tokens: what grows quadratically?"),
        {"explicit": N_("Explicit attention"), "fused": N_("Fused attention")},
        {
            "The pass": f"{_HERE}.explicit:block_pass",
            "Explicit": f"{_HERE}.explicit:explicit_attention",
        },
        f"{_HERE}.explicit",
        "length_cases",
        x_title=N_("length (tokens)"),
        seconds=25,
        reason_against=_needs_blocks,
    ),
    "threads": BenchmarkComparison(
        N_("Threads"),
        N_("The same pass on one core and on several."),
        {"1": "1 thread"},
        {"The pass": f"{_HERE}.passes:pass_with"},
        f"{_HERE}.passes",
        "thread_cases",
        clock="wall",
        reason_against=_needs_cores,
    ),
    "data": BenchmarkComparison(
        N_("Loading a batch"),
        N_("Rows of one tensor on the device, or a DataLoader per example."),
        {"loader": N_("DataLoader, one example at a time"), "one tensor": N_("Rows of one tensor")},
        {
            "A picture of the DataLoader": f"{_HERE}.loading:PictureDataset",
            "A pair of the DataLoader": f"{_HERE}.loading:PairDataset",
            "Rows of one tensor (pictures)": f"{_HERE}.loading:pictures_taken",
            "Rows of one tensor (pairs)": f"{_HERE}.loading:pairs_taken",
        },
        f"{_HERE}.loading",
        reason_against=_needs_plain_data,
    ),
    "loops": BenchmarkComparison(
        N_("Attention in loops"),
        N_("One sequence and head at a time, or all at once."),
        {"loops": N_("Loops"), "at once": N_("All at once")},
        {
            N_("Loops"): f"{_HERE}.loops:looped_attention",
            N_("All at once"): "tfm_core.layers.attention:fused_attention",
        },
        f"{_HERE}.loops",
        "attention_cases",
        reason_against=_needs_attention,
    ),
    "patches": BenchmarkComparison(
        N_("Patches in loops"),
        N_("One patch at a time, or one reshape of the whole batch."),
        {"loops": N_("Loops"), "at once": N_("One reshape")},
        {
            N_("Loops"): f"{_HERE}.loops:cut_into_patches",
            N_("One reshape"): "tfm_core.layers.patches:patchify",
        },
        f"{_HERE}.loops",
        "patch_cases",
        reason_against=_needs_pictures,
    ),
    "gpu": BenchmarkComparison(
        N_("CPU or GPU"),
        N_("From which batch size does a GPU pay off?"),
        {"cpu": "CPU", "gpu": "GPU"},
        {"The pass": f"{_HERE}.passes:one_batch"},
        f"{_HERE}.passes",
        "gpu_cases",
        x_title=N_("batch size (examples)"),
        clock="wall",
        seconds=20,
        reason_against=_needs_gpu,
    ),
    "compile": BenchmarkComparison(
        N_("torch.compile"),
        N_("Generated code; the first pass may take a minute."),
        {"eager": N_("Eager"), "compiled": N_("Compiled")},
        {
            N_("Eager"): f"{_HERE}.passes:eager_pass",
            N_("Compiled"): f"{_HERE}.passes:compiled_pass",
        },
        f"{_HERE}.passes",
        "compile_cases",
        seconds=110,
        limit=300.0,
        needs_consent=True,
        reason_against=_needs_compiler,
    ),
}
