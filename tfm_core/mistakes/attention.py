"""Mistakes in attention: the scale of scores, its matrices, the split into heads."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import Projections, Scale

if TYPE_CHECKING:
    from torch import nn


def _leave_undivided(model: nn.Module) -> None:
    for attention in attentions(model):
        attention.divisor = 1.0


def _divide_by_d_model(model: nn.Module) -> None:
    for attention in attentions(model):
        attention.divisor = math.sqrt(attention.d_model)


_UNSCALED = Scale(
    name="none", source="Vaswani et al. 2017, section 3.2.1, without the division", width=None
)
SQRT_D_MODEL = Scale(
    name="sqrt-d-model",
    source="Vaswani et al. 2017, section 3.2.1, with d_model for d_k",
    width="d_model",
)

NO_SCALE = Mistake(
    name="no-scale",
    label=N_("Scores not divided by √d_head"),
    short=N_("not divided"),
    help=Paragraph("mistakes/no-scale"),
    source=_UNSCALED.source,
    place="block",
    apply=_leave_undivided,
    form=_UNSCALED,
    probe="attention",
)
SCALED_BY_D_MODEL = Mistake(
    name="scaled-by-d-model",
    label=N_("Scores divided by √d_model"),
    short=N_("divided by √d_model"),
    help=Paragraph("mistakes/scaled-by-d-model"),
    source=SQRT_D_MODEL.source,
    place="block",
    apply=_divide_by_d_model,
    form=SQRT_D_MODEL,
    probe="attention",
)


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
    help=N_("The heads are concatenated and never mixed."),
    source="Vaswani et al. 2017, section 3.2.2, without W_O",
    place="block",
    right="return self.W_O(heads.transpose(1, 2).reshape(B, T, d_model))",
    wrong="return heads.transpose(1, 2).reshape(B, T, d_model)",
    apply=_leave_out_output,
    form=Projections(name="no-output", has_output=False, is_sliced=False),
    changes_attention_weights=True,
    probe="mixing",
)
SLICED_HEADS = Mistake(
    name="sliced-heads",
    label=N_("Heads that read slices of the embedding"),
    short=N_("each head sees its slice"),
    help=Paragraph("mistakes/sliced-heads"),
    source="Vaswani et al. 2017, section 3.2.2, with block-diagonal matrices and without W_O",
    place="block",
    right="q = self.W_Q(x).view(B, T, n_heads, d_head)  # W_Q: d_model x d_model",
    wrong="q = self.W_Q[h](x[:, :, h * d_head : (h + 1) * d_head])  # W_Q[h]: d_head x d_head",
    apply=_slice,
    form=Projections(name="sliced", has_output=False, is_sliced=True),
    changes_attention_weights=True,
    probe="mixing",
)


def _split(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import projected_at_query_length

    for attention in attentions(model):
        attention.project = partial(projected_at_query_length, attention)  # type: ignore[method-assign]


KEYS_AT_QUERY_LENGTH = Mistake(
    name="keys-at-query-length",
    label=N_("Keys and values reshaped with the query length"),
    short=N_("keys as long as queries"),
    help=Paragraph("mistakes/keys-at-query-length"),
    source="Vaswani et al. 2017, section 3.2.2, with one length for queries and keys",
    place=None,
    right="k = self.W_K(memory).view(B, S, n_heads, d_head)",
    wrong="k = self.W_K(memory).view(B, T, n_heads, d_head)  # T: the length of the queries",
    apply=_split,
    probe=None,
)


def _straighten(model: nn.Module) -> None:
    from tfm_core.layers.recurrent import AdditiveScore
    from tfm_core.mistakes.parts import linear_score

    scores = [part for part in model.modules() if isinstance(part, AdditiveScore)]
    if not scores:
        raise ValueError(f"A {type(model).__name__} has no additive score.")
    for score in scores:
        score.forward = partial(linear_score, score)  # type: ignore[method-assign]


LINEAR_SCORE = Mistake(
    name="linear-score",
    label=N_("Score that is linear in both states"),
    short=N_("linear score"),
    help=Paragraph("mistakes/linear-score"),
    source="Bahdanau et al. 2015, appendix A.1.2, without the tanh",
    place=None,
    right="score = v(torch.tanh(W(s) + U(h)))",
    wrong="score = Linear(torch.cat([s, h], -1))  # the part of s is equal for all h",
    apply=_straighten,
    probe=None,
)
