"""Masks that hide the wrong thing, or nothing: the causal mask and that of padding."""

from __future__ import annotations

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import Causality

NO_CAUSAL_MASK = Mistake(
    name="no-causal-mask",
    label=N_("No causal mask in the decoder"),
    short=N_("no causal mask"),
    help=Paragraph("mistakes/no-causal-mask"),
    source="Vaswani et al. 2017, section 3.2.3, without the mask",
    place="decoder",
    apply="tfm_core.mistakes.parts:unmask",
    form=Causality(
        name="none",
        sees_past=True,
        sees_future=True,
        note="no causal mask",
        rule=lambda window: rf"|i - j| \le {window}" if window else None,
        function="unmasked",
        cut=None,
        says="a query sees every key, later ones too",
    ),
    probe="sight",
)
MASK_TRANSPOSED = Mistake(
    name="mask-transposed",
    label=N_("Causal mask on the wrong axis"),
    short=N_("mask on the wrong axis"),
    help=Paragraph("mistakes/mask-transposed"),
    source="Vaswani et al. 2017, section 3.2.3, with keys and queries swapped in the mask",
    place="decoder",
    apply="tfm_core.mistakes.parts:transpose_mask",
    form=Causality(
        name="transposed",
        sees_past=False,
        sees_future=True,
        note="causal mask transposed",
        rule=lambda window: rf"i \le j \le i + {window}" if window else r"j \ge i",
        function="transposed",
        cut=".triu()",
        says="a query sees itself and the later keys",
    ),
    probe="sight",
)


PADDING_ON_QUERIES = Mistake(
    name="padding-on-queries",
    label=N_("Padding mask on the query axis"),
    short=N_("padding masked as queries"),
    help=Paragraph("mistakes/padding-on-queries"),
    source="Vaswani et al. 2017, section 3.2.1, with keys and queries swapped in the padding mask",
    place=None,
    right="scores.masked_fill(~keep[:, None, None, :], -inf)  # keep: (B, K)",
    wrong="scores.masked_fill(~keep[:, None, :, None], -inf)",
    apply="tfm_core.mistakes.parts:mask_padded_queries",
    probe=None,
)
FLOAT_MASK = Mistake(
    name="float-mask",
    label=N_("A mask of 0.0 and 1.0 given to scaled_dot_product_attention"),
    short=N_("mask added as numbers"),
    help=Paragraph("mistakes/float-mask"),
    source="torch.nn.functional.scaled_dot_product_attention, attn_mask of type float",
    place=None,
    right="F.scaled_dot_product_attention(q, k, v, torch.ones(T, T).tril().bool())",
    wrong="F.scaled_dot_product_attention(q, k, v, torch.ones(T, T).tril())  # added to the scores",
    apply="tfm_core.mistakes.parts:add_masks",
    probe=None,
)
