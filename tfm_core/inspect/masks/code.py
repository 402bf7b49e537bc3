"""Masks as PyTorch code that can be copied, and what a mask means to each of PyTorch's modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfm_core.inspect.masks.lab import PAD_TOKEN
from tfm_core.probe.types import Bools
from tfm_core.sentences import N_

_START = "import torch\n\n"
_KEEP = "keep = torch.tensor({keep})  # False = padding\n"
_CODE = {
    "none": "mask = torch.ones({q}, {k}, dtype=torch.bool)",
    "padding": _KEEP + "mask = keep[None, :].expand({q}, {k})  # keys: the last axis",
    "causal": "mask = torch.ones({q}, {k}, dtype=torch.bool).tril()",
    "combined": _KEEP + "causal = torch.ones({q}, {k}, dtype=torch.bool).tril()\n"
    "mask = keep[None, :] & causal",
    "cross": _KEEP + "mask = keep[None, :].expand({q}, {k})  # the target reads the source",
    "window": _KEEP + "positions = torch.arange({k})\n"
    "near = (positions[:, None] - positions[None, :]).abs() <= {window}\n"
    "mask = keep[None, :] & near",
    "prefix": _KEEP + "causal = torch.ones({q}, {k}, dtype=torch.bool).tril()\n"
    "is_prefix = torch.arange({k}) < {prefix}\n"
    "mask = keep[None, :] & (causal | is_prefix[None, :])",
    "packed": _KEEP + "segments = torch.tensor({segments})\n"
    "mask = keep[None, :] & (segments[:, None] == segments[None, :])",
}

ADDITIVE = """\
# bool (True = may attend) -> additive, in the type of the scores
added = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
scores = scores + added

# additive -> bool
mask = added == 0
"""

HOUSE_SDPA = """\
import torch.nn.functional as F

# q: (B, H, Q, D), k and v: (B, H, K, D); bool: True = takes part
out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
"""

HOUSE_MHA = """\
from torch import nn

attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
# x: (B, T, d_model); bool here means the opposite: True = forbidden
out, weights = attention(x, x, x, attn_mask=~mask, key_padding_mask=~keep)
"""


@dataclass(frozen=True, slots=True)
class Convention:
    """What a bool mask means somewhere: its argument, the meaning of True, and its shape."""

    where: str
    true_means: str
    shape: str
    additive: str


CONVENTIONS = (
    Convention(
        N_("This app"), N_("may attend"), N_("broadcastable to (B, H, Q, K)"), N_("not used")
    ),
    Convention(
        N_("F.scaled_dot_product_attention(attn_mask=...)"),
        N_("may attend"),
        N_("broadcastable to (B, H, Q, K)"),
        N_("added to the scores"),
    ),
    Convention(
        N_("nn.MultiheadAttention(attn_mask=...)"),
        N_("forbidden"),
        "(Q, K) or (B * H, Q, K)",
        N_("added to the scores"),
    ),
    Convention(
        N_("nn.MultiheadAttention(key_padding_mask=...)"),
        N_("forbidden (padding)"),
        "(B, K)",
        N_("added to the scores"),
    ),
    Convention(
        N_("nn.Transformer(src_mask=..., tgt_key_padding_mask=...)"),
        N_("forbidden"),
        "(T, T); (B, T) for padding",
        N_("added to the scores"),
    ),
    Convention(
        N_("Hugging Face attention_mask"), N_("1 = may attend"), "(B, K)", N_("made inside")
    ),
)


def snippet(
    kind: str,
    query: Sequence[str],
    key: Sequence[str],
    *,
    window: int = 1,
    prefix: int = 1,
    segments: Sequence[int] = (),
) -> str:
    """Return code that makes this very mask as bool (Q, K), True = may attend, in ``mask``."""
    return _START + _CODE[kind].format(
        q=len(query),
        k=len(key),
        keep=[token != PAD_TOKEN for token in key],
        window=window,
        prefix=prefix,
        segments=list(segments),
    )


def literal(mask: Bools) -> str:
    """Return code that spells out a mask (Q, K) as 0 and 1: for one that was clicked together."""
    rows = ",\n".join(f"    [{', '.join(str(int(cell)) for cell in row)}]" for row in mask)
    return f"{_START}mask = torch.tensor([\n{rows},\n]).bool()  # True = may attend"
