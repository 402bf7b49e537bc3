"""The comparisons by name, with what the app says about them; torch-free.

``module`` and ``function`` name the generator of cases that the measuring process runs; the first
side is the one that all others are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.precisions import PRECISIONS

_HERE = "tfm_core.inspect.speed"


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """One way of making training fast.

    sides: name -> label, the plain way first. code: label -> ``module:function`` to show.
    x_title: the horizontal axis of a curve, empty for a plain pair. clock: ``cpu`` counts this
    process's CPU-seconds, ``wall`` what a person waits. seconds: roughly how long it takes.
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
            "Written out": f"{_HERE}.explicit:explicit_attention",
            N_("Two einsums"): f"{_HERE}.explicit:einsum_attention",
            N_("Fused"): "tfm_core.layers.attention:fused_attention",
        },
        f"{_HERE}.explicit",
    ),
    "checkpointing": BenchmarkComparison(
        N_("Gradient checkpointing"),
        Paragraph("speed/checkpointing-help"),
        {"plain": N_("Everything kept"), "checkpointed": N_("Blocks recomputed")},
        {
            "Everything is kept": f"{_HERE}.checkpointing:plain_pass",
            "Blocks are computed again": f"{_HERE}.checkpointing:checkpointed",
        },
        f"{_HERE}.checkpointing",
    ),
    "precision": BenchmarkComparison(
        N_("16 bits: autocast"),
        N_("Matrix products in bf16 or fp16, not fp32."),
        {name: each.label for name, each in PRECISIONS.items()},
        {
            "Single precision": f"{_HERE}.precision:fp32_pass",
            "Autocast": f"{_HERE}.precision:autocast_pass",
        },
        f"{_HERE}.precision",
    ),
    "batch": BenchmarkComparison(
        N_("Batch size"),
        N_("Examples per second, from one at a time to twice your batch."),
        {"batch": N_("Forward and backward")},
        {
            "One by one": f"{_HERE}.batches:one_by_one",
            "A batch": f"{_HERE}.batches:one_batch",
        },
        f"{_HERE}.batches",
        x_title=N_("batch size (examples)"),
        seconds=20,
    ),
    "length": BenchmarkComparison(
        N_("Sequence length"),
        N_("One block of your model on 16 to 1,024 tokens: what grows quadratically?"),
        {"explicit": N_("Explicit attention"), "fused": N_("Fused attention")},
        {
            "The pass": f"{_HERE}.lengths:block_pass",
            "Written out": f"{_HERE}.explicit:explicit_attention",
        },
        f"{_HERE}.lengths",
        x_title=N_("length (tokens)"),
        seconds=25,
    ),
    "threads": BenchmarkComparison(
        N_("Threads"),
        N_("The same pass on one core and on several."),
        {"1": "1 thread"},
        {"The pass": f"{_HERE}.threads:pass_with"},
        f"{_HERE}.threads",
        clock="wall",
    ),
    "data": BenchmarkComparison(
        N_("Loading a batch"),
        N_("Rows of one tensor on the device, or a DataLoader that transforms each example."),
        {"loader": N_("DataLoader, one example at a time"), "one tensor": N_("Rows of one tensor")},
        {
            "A picture of the DataLoader": f"{_HERE}.loading:PictureDataset",
            "A pair of the DataLoader": f"{_HERE}.loading:PairDataset",
            "Rows of one tensor (pictures)": f"{_HERE}.loading:pictures_taken",
            "Rows of one tensor (pairs)": f"{_HERE}.loading:pairs_taken",
        },
        f"{_HERE}.loading",
    ),
    "loops": BenchmarkComparison(
        N_("Attention in loops"),
        N_("One sequence and head at a time, or all at once."),
        {"loops": "Loops", "at once": N_("All at once")},
        {
            "Loops": f"{_HERE}.loops:looped_attention",
            N_("All at once"): "tfm_core.layers.attention:fused_attention",
        },
        f"{_HERE}.loops",
        "attention_cases",
    ),
    "patches": BenchmarkComparison(
        N_("Patches in loops"),
        N_("One patch at a time, or one reshape of the whole batch."),
        {"loops": "Loops", "at once": N_("One reshape")},
        {
            "Loops": f"{_HERE}.loops:cut_into_patches",
            N_("One reshape"): "tfm_core.layers.patches:patchify",
        },
        f"{_HERE}.loops",
        "patch_cases",
    ),
    "gpu": BenchmarkComparison(
        N_("CPU or GPU"),
        N_("From which batch size does a GPU pay off?"),
        {"cpu": "CPU", "gpu": "GPU"},
        {"The pass": f"{_HERE}.batches:one_batch"},
        f"{_HERE}.accelerator",
        x_title=N_("batch size (examples)"),
        clock="wall",
        seconds=20,
    ),
    "compile": BenchmarkComparison(
        N_("torch.compile"),
        N_(
            "Generated code, not one operation at a time; the first pass may take a minute.",
        ),
        {"eager": N_("Eager"), "compiled": "Compiled"},
        {
            "As Python says": f"{_HERE}.compiling:eager_pass",
            "Compiled": f"{_HERE}.compiling:compiled_pass",
        },
        f"{_HERE}.compiling",
        seconds=110,
        limit=300.0,
        needs_consent=True,
    ),
}
