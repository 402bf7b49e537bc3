"""Matrices that an attention lacks: the output matrix, or all but the slices of its heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_
from tfm_core.variants.projections import PROJECTIONS

if TYPE_CHECKING:
    from torch import nn


def _leave_out_output(model: nn.Module) -> None:
    from torch import nn

    for attention in attentions(model):
        attention.out_projection = nn.Identity()


def _slice(model: nn.Module) -> None:
    from torch import nn

    from tfm_core.mistakes.parts import SlicedProjection

    _leave_out_output(model)
    for attention in attentions(model):
        if isinstance(attention.in_projection, nn.Linear):
            sliced = SlicedProjection(attention.in_projection, attention.n_heads)
            attention.in_projection = sliced  # type: ignore[assignment] # it has weight and bias


NO_OUTPUT_PROJECTION = Mistake(
    name="no-output-projection",
    label=N_("No output projection after the heads"),
    help=PROJECTIONS["no-output"].help,
    source=PROJECTIONS["no-output"].source,
    settings={"model.projections": "no-output"},
    apply=_leave_out_output,
    changes_attention_weights=True,
    means=N_("Each head wrote to its own slice of the vector, and no matrix mixed the heads."),
    probe="mixing",
)
SLICED_HEADS = Mistake(
    name="sliced-heads",
    label=N_("Heads that read slices of the embedding"),
    help=PROJECTIONS["sliced"].help,
    source=PROJECTIONS["sliced"].source,
    settings={"model.projections": "sliced"},
    apply=_slice,
    changes_attention_weights=True,
    means=N_("A head saw its own slice of each vector, not all of it."),
    probe="mixing",
)
