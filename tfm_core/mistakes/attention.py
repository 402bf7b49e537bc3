"""Mistakes in attention: the scale of scores, its matrices, the split into heads."""

from __future__ import annotations

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import Projections, Scale

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
    apply="tfm_core.mistakes.parts:leave_undivided",
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
    apply="tfm_core.mistakes.parts:divide_by_d_model",
    form=SQRT_D_MODEL,
    probe="attention",
)


NO_OUTPUT_PROJECTION = Mistake(
    name="no-output-projection",
    label=N_("No output projection after the heads"),
    short=N_("no output matrix"),
    help=N_("The heads are concatenated and never mixed."),
    source="Vaswani et al. 2017, section 3.2.2, without W_O",
    place="block",
    right="return self.W_O(heads.transpose(1, 2).reshape(B, T, d_model))",
    wrong="return heads.transpose(1, 2).reshape(B, T, d_model)",
    apply="tfm_core.mistakes.parts:leave_out_output",
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
    apply="tfm_core.mistakes.parts:slice_heads",
    form=Projections(name="sliced", has_output=False, is_sliced=True),
    changes_attention_weights=True,
    probe="mixing",
)


KEYS_AT_QUERY_LENGTH = Mistake(
    name="keys-at-query-length",
    label=N_("Keys and values reshaped with the query length"),
    short=N_("keys as long as queries"),
    help=Paragraph("mistakes/keys-at-query-length"),
    source="Vaswani et al. 2017, section 3.2.2, with one length for queries and keys",
    place=None,
    right="k = self.W_K(memory).view(B, S, n_heads, d_head)",
    wrong="k = self.W_K(memory).view(B, T, n_heads, d_head)  # T: the length of the queries",
    apply="tfm_core.mistakes.parts:split_at_query_length",
    probe=None,
)


LINEAR_SCORE = Mistake(
    name="linear-score",
    label=N_("Score that is linear in both states"),
    short=N_("linear score"),
    help=Paragraph("mistakes/linear-score"),
    source="Bahdanau et al. 2015, appendix A.1.2, without the tanh",
    place=None,
    right="score = v(torch.tanh(W(s) + U(h)))",
    wrong="score = Linear(torch.cat([s, h], -1))  # the part of s is equal for all h",
    apply="tfm_core.mistakes.parts:straighten_scores",
    probe=None,
)
