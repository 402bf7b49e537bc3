"""Multi-head attention written in six ways with the same weights: they give the same numbers.

A list of small heads is how it is explained; one large projection, cut by a view, is how it is
computed. The code shown for each form is the code that ran.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.inspect.by_hand.attention import Matrices, layer
from tfm_core.inspect.syntax import source
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class CodeForm:
    """One way to write it. output: (T, d_model). weights: (H, T, T), None where it has none.

    difference: the largest absolute difference of the output to that of the app's own layer; NaN
    where the form gives NaN.
    """

    name: str
    code: str
    output: Floats
    weights: Floats | None
    difference: float
    weight_difference: float | None


def list_of_heads(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Each head with its own small matrices, one after the other."""
    import torch

    outputs, maps = [], []
    for q, k, v in zip(*(w.chunk(n_heads, dim=1) for w in (w_q, w_k, w_v)), strict=True):
        query, key, value = x @ q, x @ k, x @ v  # (T, d_head)
        scores = query @ key.T / math.sqrt(q.size(1))  # (T, T)
        weights = scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)
        outputs.append(weights @ value)
        maps.append(weights)
    return torch.cat(outputs, dim=-1) @ w_o, torch.stack(maps)


def one_projection(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """All heads at once: one product, then a view cuts the last axis into heads."""
    import torch

    words, d_model = x.shape
    w_qkv = torch.cat([w_q, w_k, w_v], dim=1)  # (d_model, 3 * d_model)
    q, k, v = (
        part.view(words, n_heads, -1).transpose(0, 1)  # (T, d_model) -> (H, T, d_head)
        for part in (x @ w_qkv).chunk(3, dim=-1)
    )
    scores = q @ k.mT / math.sqrt(d_model // n_heads)  # (H, T, T)
    weights = scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)
    joined = (weights @ v).transpose(0, 1).reshape(words, d_model)
    return joined @ w_o, weights


def einsum(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The axes by letters, no transpose: n batch, q queries, k or l keys, h heads, d of a head."""
    import torch

    n, words, d_head = 1, len(x), x.size(1) // n_heads
    q, k, v = ((x @ w).view(n, words, n_heads, d_head) for w in (w_q, w_k, w_v))
    scores = torch.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(d_head)
    weights = scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)
    heads = torch.einsum("nhql,nlhd->nqhd", weights, v)  # (n, T, H, d_head)
    return heads.reshape(words, -1) @ w_o, weights[0]


def fused(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, None]:
    """The same with PyTorch's fused kernel, which never lays the weights out in memory."""
    from torch import nn

    q, k, v = (
        (x @ w).view(1, len(x), n_heads, -1).transpose(1, 2)  # (1, H, T, d_head)
        for w in (w_q, w_k, w_v)
    )
    heads = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return heads.transpose(1, 2).reshape(x.shape) @ w_o, None


def pytorch_module(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Copy the weights into nn.MultiheadAttention; its mask says True where it is forbidden."""
    import torch
    from torch import nn

    module = nn.MultiheadAttention(x.size(1), n_heads, bias=False, batch_first=True).eval()
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([w_q.T, w_k.T, w_v.T]))
        module.out_proj.weight.copy_(w_o.T)
        batch = x[None]  # (1, T, d_model)
        output, weights = module(batch, batch, batch, attn_mask=~mask, average_attn_weights=False)
    return output[0], weights[0]


FORMS: dict[str, Callable[..., tuple[Tensor, Tensor | None]]] = {
    "A list of small heads": list_of_heads,
    "One large projection": one_projection,
    "Two einsums": einsum,
    "One projection, fused kernel": fused,
    "nn.MultiheadAttention": pytorch_module,
}


def forms(
    vectors: Floats, matrices: Matrices, n_heads: int, allowed: Bools
) -> tuple[CodeForm, ...]:
    """Run every form on vectors (T, d_model); the first is the app's own layer, as it records.

    Raises ValueError when n_heads does not divide d_model.
    """
    import torch

    from tfm_core.probe.capture import capture

    own = layer(matrices, n_heads)
    x, mask = torch.tensor(vectors, dtype=torch.float32), torch.tensor(allowed)
    with capture(own) as cache:
        output = own(x[None], mask=mask)[0]
    weights = cache[".weights"][0]
    parts = [
        torch.tensor(m, dtype=torch.float32)
        for m in (matrices.query, matrices.key, matrices.value, matrices.out)
    ]
    own_parts = (type(own).forward, type(own).project, type(own)._heads, type(own).merge)
    lines = "".join(source(part) for part in own_parts)
    made = [CodeForm(N_("This app’s layer"), lines, output.numpy(), weights.numpy(), 0.0, 0.0)]
    for name, form in FORMS.items():
        with torch.no_grad():
            result, maps = form(x, *parts, n_heads, mask)
        made.append(
            CodeForm(
                name,
                source(form),
                result.numpy(),
                None if maps is None else maps.numpy(),
                float((result - output).abs().max()),
                None if maps is None else float((maps - weights).abs().max()),
            )
        )
    return tuple(made)


def agree(made: tuple[CodeForm, ...], tolerance: float = 1e-4) -> bool:
    """Return whether all forms give the same output to within a tolerance."""
    return bool(np.all([form.difference <= tolerance for form in made]))
