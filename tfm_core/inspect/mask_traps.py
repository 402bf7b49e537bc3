"""Ways to get a mask wrong, measured: the wrong axis, a float mask, half precision, a blind row.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.inspect.mask_lab import Projected
from tfm_core.inspect.tables import table
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


TYPES = ("float32", "bfloat16", "float16")
FILLS = ("-1e9", "-1e4", "lowest", "-inf")


def wrong_axis(
    projected: Projected,
    is_padding: Bools,
    rest: Bools,
    clicked: Collection[tuple[int, int]] = (),
) -> dict[str, tuple[Floats, float]]:
    """Lay the padding mask on keys, then by mistake on queries: ``(B, 1, K, 1)``.

    Return the weights (Q, K) where it is right, wrong, and wrong without the rest of the mask
    (alone), with the share of attention that real tokens then spend on padding, 0 to 1.
    is_padding: bool (K,), True = padding, for square scores. rest: bool (Q, K), what the chosen
    mask allows where it does not look at padding. clicked: cells turned over by hand. Raises
    ValueError without padding.
    """
    from tfm_core.inspect.mask_lab import masked_attention, toggle_cells

    if not is_padding.any() or is_padding.all():
        raise StudentError("Add padding above. This trap needs padding and real tokens.")
    keep = np.array(np.broadcast_to(~is_padding, projected.scores.shape))

    masks = {
        "right": toggle_cells(keep & rest, clicked),
        "wrong": toggle_cells(keep.T & rest, clicked),
        "alone": np.array(keep.T),
    }
    weights = {name: masked_attention(projected, mask).weights for name, mask in masks.items()}
    return {
        name: (some, float(some[~is_padding][:, is_padding].sum(1).mean()))
        for name, some in weights.items()
    }


def float_mask(projected: Projected, allowed: Bools) -> tuple[Floats, Floats, float]:
    """Hand a mask (Q, K), True = may attend, to PyTorch's attention as bool and as float.

    Return the weights (Q, K) of both, where the 0.0 and 1.0 are added to the scores, and the share
    of attention that queries then spend on forbidden keys, 0 to 1, on average.
    Raises StudentError where the mask forbids nothing.
    """
    import torch
    import torch.nn.functional as F

    from tfm_core.inspect.mask_lab import masked_attention

    if allowed.all():
        raise StudentError("This mask hides nothing. Choose another one.")
    scores, keys = torch.tensor(projected.scores, dtype=torch.float32), torch.eye(len(allowed[0]))
    added = F.scaled_dot_product_attention(
        scores[None], keys[None], keys[None], torch.tensor(allowed).float()[None], scale=1.0
    )
    wrong = added[0].numpy()  # with one-hot keys and values: the weights themselves
    leaked = float(np.where(allowed, 0, wrong).sum(1).mean())
    return masked_attention(projected, allowed).weights, wrong, leaked


def mixed_row(mask: Bools) -> int | None:
    """Return the first query of a mask (Q, K) that may attend to some keys and not to others."""
    mixed = np.flatnonzero(mask.any(1) & ~mask.all(1))
    return int(mixed[0]) if len(mixed) else None


def precision(scores: Floats, allowed: Bools) -> pd.DataFrame:
    """Try every type and fill on one row of scores (K,) and its mask (K,), True = may attend.

    A row for each: dtype, fill; stored: the fill as the type holds it, None where PyTorch refuses
    it; leak: the largest weight on a forbidden key; blind: the weights of a row where all is
    forbidden; twice: the same, after two additive masks forbid the row; verdict: what to expect.
    """
    import torch

    rows: list[tuple[object, ...]] = []
    for name in TYPES:
        dtype: torch.dtype = getattr(torch, name)
        row = torch.tensor(np.asarray(scores, np.float32)).to(dtype)
        forbidden = ~torch.tensor(allowed)
        for fill in FILLS:
            value = float(torch.finfo(dtype).min) if fill == "lowest" else float(fill)
            try:
                filled = row.masked_fill(forbidden, value)
            except RuntimeError:  # "value cannot be converted to type c10::Half without overflow"
                refused = N_("error: the smallest {dtype} is −65,504", dtype=name)
                rows.append((name, fill, None, np.nan, (), (), refused))
                continue
            leak = float(filled.softmax(-1)[forbidden].max()) if forbidden.any() else 0.0
            blind = row.masked_fill(torch.ones_like(forbidden), value).softmax(-1).tolist()
            twice = (row + value + value).softmax(-1).tolist()
            stored = float(torch.tensor(value).to(dtype))
            rows.append((name, fill, stored, leak, blind, twice, _verdict(leak, blind, twice)))
    columns = {"dtype": str, "fill": str, "stored": object, "leak": float}
    return table(rows, **columns, blind=object, twice=object, verdict=object)


def _verdict(leak: float, blind: Sequence[float], twice: Sequence[float]) -> str:
    if leak > 0:
        return N_("leaks: a forbidden key gets weight")
    if any(map(np.isnan, blind)):
        return N_("works, but a fully masked row becomes NaN")
    if any(map(np.isnan, twice)):
        return N_("works once, but two added masks overflow")
    return N_("works, but a fully masked row averages all keys")


def blind_row(projected: Projected, query: int) -> dict[str, Floats]:
    """Forbid one query everything; return its weights (K,), by who computes the softmax.

    ``naive``: -inf and softmax. ``-1e9``: a large number instead. ``ours``: this app's layers.
    ``nn.MultiheadAttention`` answers with NaN where it returns weights, else with zeros.
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


def nan_rows(projected: Projected, query: int) -> tuple[int, int]:
    """Return how many rows of the output are NaN after one blind query: here, and a layer on.

    -inf and softmax make the weights of that query 0/0. The layer that follows attends evenly,
    under a causal mask; where its weight for that row is exactly 0, 0 * NaN is still NaN.
    """
    import torch

    scores = torch.tensor(projected.scores, dtype=torch.float32)
    scores[query] = float("-inf")
    here = scores.softmax(-1) @ torch.tensor(projected.value, dtype=torch.float32)
    n = len(scores)
    even = torch.zeros(n, n).masked_fill(~torch.ones(n, n).bool().tril(), float("-inf")).softmax(-1)
    later = even @ here
    return int(here.isnan().any(1).sum()), int(later.isnan().any(1).sum())


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
        with_weights = module(x, x, x, attn_mask=~may, need_weights=True)[0][0]
        without_weights = module(x, x, x, attn_mask=~may, need_weights=False)[0][0]
    return {
        "F.scaled_dot_product_attention": _kind_of_row(fused[1]),
        "nn.MultiheadAttention(need_weights=True)": _kind_of_row(with_weights[1]),
        "nn.MultiheadAttention(need_weights=False)": _kind_of_row(without_weights[1]),
    }


def _kind_of_row(row: Tensor) -> str:
    if bool(row.isnan().any()):
        return "NaN"
    return N_("zeros") if not bool(row.any()) else N_("numbers")
