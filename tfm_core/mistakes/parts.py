"""What a model is made of only where a mistake is made in it: layers, masks and functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.masks import causal_mask
from tfm_core.layers.recurrent import AdditiveScore
from tfm_core.layers.relative import RelativeFunction


class SharedNorm(nn.Module):
    """Another sublayer's norm, used here too; a separate module, so that captures differ."""

    def __init__(self, norm: nn.Module) -> None:
        """Use the same scale and shift as ``norm``."""
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """Map x: (B, T, d_model) to the same shape."""
        out: Tensor = self.norm(x)
        return out


class SlicedProjection(nn.Module):
    """Queries, keys and values of heads that each see their own slice of the vector only.

    Equal to an ``nn.Linear`` with the heads' d_head x d_head matrices on its diagonal.
    """

    def __init__(self, whole: nn.Linear, n_heads: int) -> None:
        """Take the diagonal of a (3 * d_model, d_model) projection, and its bias.

        ``heads``: (3, H, D, D), a matrix for query, key and value of each head.
        """
        super().__init__()
        d_head = whole.in_features // n_heads
        by_head = whole.weight.detach().view(3, n_heads, d_head, n_heads, d_head)
        diagonal = by_head.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2)  # (3, H, D, D)
        self.heads = nn.Parameter(diagonal.clone(memory_format=torch.contiguous_format))
        self.bias = whole.bias

    @property
    def weight(self) -> Tensor:
        """The whole matrix (3 * d_model, d_model), zero outside the slices."""
        return torch.cat([torch.block_diag(*part) for part in self.heads])  # type: ignore[no-untyped-call]

    def reset_parameters(self) -> None:
        """Draw each matrix as in Glorot & Bengio 2010; the bias becomes 0."""
        bound = math.sqrt(3 / self.heads.size(-1))
        nn.init.uniform_(self.heads, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map x: (B, T, d_model) to (B, T, 3 * d_model): query, key, value."""
        return F.linear(x, self.weight, self.bias)


def unmasked(length: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: a query sees every key, in a decoder its own answer too."""
    return torch.ones(length, length, dtype=torch.bool, device=device)


def transposed_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: the causal mask transposed, showing later keys."""
    return causal_mask(length, device).mT


def turned(forward: Callable[..., Tensor], stack: nn.Module, *args: Tensor, **settings: Any) -> Any:
    """Run a stack with a mask of padding (..., 1, K) laid on the queries: (..., K, 1)."""
    mask = settings.get("mask")
    if mask is not None and mask.size(-2) == 1:
        settings["mask"] = mask.mT
    return forward(stack, *args, **settings)


class AddedMask:
    """Adds a bool mask to the scores as numbers, 1.0 for True, beside any relative positions."""

    def __init__(self, mask: Tensor | None, relative: RelativeFunction | None) -> None:
        """mask: broadcastable to (B, H, Q, K)."""
        self.mask, self.relative = mask, relative

    def __call__(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return queries, keys and what is added to the scores."""
        bias = None
        if self.relative is not None:
            q, k, bias = self.relative(q, k)
        if self.mask is None:
            return q, k, bias
        added = self.mask.to(q.dtype)
        return q, k, added if bias is None else bias + added


def projected_at_query_length(
    attention: MultiHeadAttention, x: Tensor, memory: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return query, key and value (B, H, Q, D), all reshaped with the query length.

    Raises RuntimeError if ``memory`` (B, K, d_model) has another length.
    """
    q, k, v = MultiHeadAttention.project(attention, x, memory)
    batch, n_heads, length, d_head = q.shape

    def split(part: Tensor) -> Tensor:
        merged = part.transpose(1, 2).flatten(2)  # (B, K, d_model)
        return merged.view(batch, length, n_heads, d_head).transpose(1, 2)

    return q, split(k), split(v)


def linear_score(score: AdditiveScore, query_projection: Tensor, prepared: Tensor) -> Tensor:
    """Return v^T (W s + U h) of an additive score, (B, Q, K): linear in both states."""
    scores: Tensor = score.v(query_projection) + score.v(prepared).mT
    return scores


def dropped(share: float, norm: nn.Module, inputs: object, output: Tensor) -> Tensor:
    """Drop a share of what a norm returns, in training; a forward hook."""
    return F.dropout(output, share, norm.training)
