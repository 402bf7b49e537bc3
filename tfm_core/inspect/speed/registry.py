"""The comparisons by name, with their words and where they make sense; torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.precisions import PRECISIONS
from tfm_core.sentences import N_, Paragraph

_HERE = "tfm_core.inspect.speed"


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """One way of making training fast.

    sides: name -> label, the reference first. code: label -> ``module:function`` to show. module,
    function: the generator of cases. x_title: the axis of a curve, empty for a plain pair. seconds:
    roughly how long it takes.
    """

    label: str
    help: str
    sides: Mapping[str, str]
    code: Mapping[str, str]
    module: str
    function: str
    x_title: str = ""
    seconds: int = 15
    needs_blocks: bool = False

    def why_not(self, experiment: Experiment) -> str | None:
        """Return why it makes no sense for an experiment; None where it does."""
        if self.needs_blocks and not experiment.model.has_blocks:
            return N_("This needs Transformer blocks; choose a Transformer.")
        return None


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
        "cases",
        needs_blocks=True,
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
    "checkpointing": BenchmarkComparison(
        N_("Checkpointing and 16 bits"),
        Paragraph("speed/checkpointing-help"),
        {
            "plain": N_("Everything kept"),
            "checkpointed": N_("Blocks recomputed"),
            "bf16": PRECISIONS["bf16"].label,
            "fp16": PRECISIONS["fp16"].label,
            "both": N_("Blocks recomputed, in bf16"),
        },
        {
            "Everything kept": f"{_HERE}.passes:plain_pass",
            "Blocks recomputed": f"{_HERE}.passes:checkpointed",
            "Autocast": f"{_HERE}.passes:autocast_pass",
        },
        f"{_HERE}.passes",
        "checkpointing_cases",
        needs_blocks=True,
    ),
}
