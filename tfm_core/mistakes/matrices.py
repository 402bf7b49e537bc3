"""Matrices that an attention lacks: the output matrix, or all but the slices of its heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_
from tfm_core.variants.forms import Projections

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
    short=N_("no output matrix"),
    help=N_("The heads are put side by side and never mixed."),
    source="Vaswani et al. 2017, section 3.2.2, without W_O",
    place="block",
    right="return self.W_O(heads.transpose(1, 2).reshape(B, T, d_model))",
    wrong="return heads.transpose(1, 2).reshape(B, T, d_model)",
    apply=_leave_out_output,
    form=Projections(name="no-output", has_output=False, is_sliced=False),
    changes_attention_weights=True,
    means=N_("Each head wrote to its own slice of the vector, and no matrix mixed the heads."),
    probe="mixing",
)
SLICED_HEADS = Mistake(
    name="sliced-heads",
    label=N_("Heads that read slices of the embedding"),
    short=N_("each head sees its slice"),
    help=N_(
        "Each head sees only its own slice of the vector, by d_head x d_head matrices, and nothing "
        "mixes the heads: few parameters."
    ),
    source="Vaswani et al. 2017, section 3.2.2, with block-diagonal matrices and without W_O",
    place="block",
    right="q = self.W_Q(x).view(B, T, n_heads, d_head)  # W_Q: d_model x d_model",
    wrong="q = self.W_Q[h](x[:, :, h * d_head : (h + 1) * d_head])  # W_Q[h]: d_head x d_head",
    apply=_slice,
    form=Projections(name="sliced", has_output=False, is_sliced=True),
    changes_attention_weights=True,
    means=N_("A head saw its own slice of each vector, not all of it."),
    probe="mixing",
)
