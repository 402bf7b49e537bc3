"""Three ways to get a mask wrong, measured: the wrong axis, half precision, a blind row.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.inspect.masks.lab import Array, Bools, Projected
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

TYPES = ("float32", "bfloat16", "float16")
FILLS = ("-1e9", "-1e4", "lowest", "-inf")


@dataclass(frozen=True, slots=True, eq=False)
class WrongAxis:
    """Weights (Q, K) where padding is masked as a key, and where it is masked as a query."""

    right: Array
    wrong: Array
    leaked: float
    """Share of attention that real tokens then spend on padding, 0 to 1."""


def wrong_axis(projected: Projected, is_padding: Bools) -> WrongAxis:
    """Lay the padding mask on keys, then by mistake on queries: ``(B, 1, K, 1)``.

    is_padding: bool (K,), True = padding, for square scores. Raises ValueError without padding.
    """
    from tfm_core.inspect.masks.lab import flow

    if not is_padding.any() or is_padding.all():
        raise StudentError("This needs some padding and some real tokens: add padding above.")
    keep = np.broadcast_to(~is_padding, projected.scores.shape)
    right = flow(projected, np.array(keep)).weights
    wrong = flow(projected, np.array(keep.T)).weights
    return WrongAxis(right, wrong, float(wrong[~is_padding][:, is_padding].sum(1).mean()))


@dataclass(frozen=True, slots=True)
class FillResult:
    """What a number type does with a fill value; nan marks what is not a number.

    stored: the fill as the type holds it, None where PyTorch refuses it. leak: the largest weight
    on a forbidden key. blind: the weights of a row where all is forbidden. twice: the same, after
    two additive masks forbid the row.
    """

    dtype: str
    fill: str
    stored: float | None
    leak: float = float("nan")
    blind: tuple[float, ...] = ()
    twice: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        """What to expect, in a few words."""
        if self.stored is None:
            return N_("refused: {dtype} ends at -65504", dtype=self.dtype)
        if self.leak > 0:
            return N_("leaks: a forbidden key gets weight")
        if any(map(np.isnan, self.blind)):
            return N_("right; blind rows are NaN")
        if any(map(np.isnan, self.twice)):
            return N_("right once; two masks overflow")
        return N_("right; blind rows attend evenly")


def precision(scores: Array) -> list[FillResult]:
    """Try every type and fill on one row of scores (K,), whose second half is forbidden."""
    import torch

    results = []
    for name in TYPES:
        dtype: torch.dtype = getattr(torch, name)
        row = torch.tensor(np.asarray(scores, np.float32)).to(dtype)
        forbidden = torch.arange(len(row)) >= (len(row) + 1) // 2
        for fill in FILLS:
            value = float(torch.finfo(dtype).min) if fill == "lowest" else float(fill)
            try:
                filled = row.masked_fill(forbidden, value)
            except RuntimeError:  # "value cannot be converted to type c10::Half without overflow"
                results.append(FillResult(name, fill, None))
                continue
            leak = float(filled.softmax(-1)[forbidden].max()) if forbidden.any() else 0.0
            blind = row.masked_fill(torch.ones_like(forbidden), value).softmax(-1)
            twice = (row + value + value).softmax(-1)
            stored = float(torch.tensor(value).to(dtype))
            results.append(FillResult(name, fill, stored, leak, _plain(blind), _plain(twice)))
    return results


def blind_row(projected: Projected, query: int) -> dict[str, Array]:
    """Forbid one query everything; return its weights (K,), by who computes the softmax.

    ``naive``: -inf and softmax. ``-1e9``: a large number instead. ``ours``: this app's layers.
    ``nn.MultiheadAttention`` answers with NaN where weights are asked for and with zeros where not.
    """
    import torch

    from tfm_core.layers.attention import masked_softmax

    scores = torch.tensor(projected.scores[query], dtype=torch.float32)
    nothing = torch.zeros(len(scores), dtype=torch.bool)
    lowest = scores.masked_fill(~nothing, torch.finfo(scores.dtype).min)
    return {
        "naive": scores.masked_fill(~nothing, float("-inf")).softmax(-1).numpy(),
        "-1e9": scores.masked_fill(~nothing, -1e9).softmax(-1).numpy(),
        "ours": masked_softmax(lowest, nothing).numpy(),
    }


def torch_blind_rows() -> dict[str, str]:
    """Ask this version of PyTorch for a row where nothing is allowed: zeros or NaN, measured."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    may = torch.tensor([[True, False], [False, False]])
    x = torch.ones(1, 2, 4)
    module = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    with torch.no_grad():
        fused = F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=may)[0, 0]
        asked = module(x, x, x, attn_mask=~may, need_weights=True)[0][0]
        unasked = module(x, x, x, attn_mask=~may, need_weights=False)[0][0]
    return {
        "F.scaled_dot_product_attention": _said(fused[1]),
        "nn.MultiheadAttention(need_weights=True)": _said(asked[1]),
        "nn.MultiheadAttention(need_weights=False)": _said(unasked[1]),
    }


def _said(row: Tensor) -> str:
    if bool(row.isnan().any()):
        return "NaN"
    return "zeros" if not bool(row.any()) else "numbers"


def _plain(row: Tensor) -> tuple[float, ...]:
    return tuple(float(value) for value in row)
