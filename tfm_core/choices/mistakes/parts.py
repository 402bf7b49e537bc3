"""Mistakes as they are made in a healthy model, or in a part of one: in place, once for all.

Unlike an intervention, which is over with its block, a mistake stays while the model is trained,
compiled, written and copied, so it changes modules. Each function makes one; a record names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.masks import causal_mask
from tfm_core.layers.recurrent import AdditiveScore
from tfm_core.layers.relative import RelativeFunction

_Layer = TypeVar("_Layer", bound=nn.Module)


def _all(kind: type[_Layer], model: nn.Module) -> Iterator[_Layer]:
    return (part for part in model.modules() if isinstance(part, kind))


# ---- attention


def leave_undivided(model: nn.Module) -> None:
    """Let scores be as they are."""
    for attention in _all(MultiHeadAttention, model):
        attention.divisor = 1.0


def divide_by_d_model(model: nn.Module) -> None:
    """Divide scores by sqrt(d_model)."""
    for attention in _all(MultiHeadAttention, model):
        attention.divisor = math.sqrt(attention.d_model)


def leave_out_output(model: nn.Module) -> None:
    """Leave out W_O."""
    for attention in _all(MultiHeadAttention, model):
        attention.out_projection = nn.Identity()


def slice_heads(model: nn.Module) -> None:
    """Let each head see its own slice of a vector, and leave out W_O."""
    leave_out_output(model)
    for attention in _all(MultiHeadAttention, model):
        if isinstance(attention.in_projection, nn.Linear):
            sliced = SlicedProjection(attention.in_projection, attention.n_heads)
            attention.in_projection = sliced  # type: ignore[assignment] # it has weight and bias


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


def split_at_query_length(model: nn.Module) -> None:
    """Reshape keys and values with the query length.

    The model then raises RuntimeError for a ``memory`` of another length.
    """

    def project(
        attention: MultiHeadAttention, x: Tensor, memory: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = MultiHeadAttention.project(attention, x, memory)
        batch, n_heads, length, d_head = q.shape

        def split(part: Tensor) -> Tensor:
            merged = part.transpose(1, 2).flatten(2)  # (B, K, d_model)
            return merged.view(batch, length, n_heads, d_head).transpose(1, 2)

        return q, split(k), split(v)

    for attention in _all(MultiHeadAttention, model):
        attention.project = partial(project, attention)  # type: ignore[method-assign]


def straighten_scores(model: nn.Module) -> None:
    """Leave the tanh out of additive scores. Raises ValueError where there is none."""

    def linear_score(score: AdditiveScore, query_projection: Tensor, prepared: Tensor) -> Tensor:
        scores: Tensor = score.v(query_projection) + score.v(prepared).mT  # v^T (W s + U h)
        return scores

    scores = list(_all(AdditiveScore, model))
    if not scores:
        raise ValueError(f"A {type(model).__name__} has no additive score.")
    for score in scores:
        score.forward = partial(linear_score, score)  # type: ignore[method-assign]


# ---- masks


def unmasked(length: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: a query sees every key, in a decoder its own answer too."""
    return torch.ones(length, length, dtype=torch.bool, device=device)


def _transposed_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: the causal mask transposed, showing later keys."""
    return causal_mask(length, device).mT


def unmask(model: nn.Module) -> None:
    """Let a decoder see later tokens. Raises ValueError where there is no causal mask."""
    _check_writes(model).order_mask = unmasked  # type: ignore[assignment]


def transpose_mask(model: nn.Module) -> None:
    """Let a decoder see later tokens alone. Raises ValueError where there is no causal mask."""
    _check_writes(model).order_mask = _transposed_mask  # type: ignore[assignment]


def _check_writes(model: nn.Module) -> nn.Module:
    if not hasattr(model, "order_mask"):
        raise ValueError(f"A {type(model).__name__} writes no text, so it has no causal mask.")
    return model


def mask_padded_queries(model: nn.Module) -> None:
    """Lay the padding mask of an encoder on its queries. Raises ValueError where there is none."""

    def turned(run: Callable[..., Tensor], stack: nn.Module, *args: Tensor, **given: Any) -> Any:
        mask = given.get("mask")
        if mask is not None and mask.size(-2) == 1:  # (..., 1, K)
            given["mask"] = mask.mT
        return run(stack, *args, **given)

    encoder = getattr(model, "encoder", None)
    if not isinstance(encoder, Stack) or not hasattr(model, "src_embedding"):
        raise ValueError(f"A {type(model).__name__} encodes no text, so it masks no padding there.")
    kind = type(encoder)
    encoder.forward = partial(turned, kind.forward, encoder)  # type: ignore[method-assign]
    encoder.at = partial(turned, kind.at, encoder)  # type: ignore[method-assign]


def add_masks(model: nn.Module) -> None:
    """Add masks to the scores as numbers, 1.0 for True, beside any relative positions."""

    def added(
        attention: MultiHeadAttention,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        relative: RelativeFunction | None = None,
    ) -> Tensor:
        def with_mask(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
            q, k, bias = (q, k, None) if relative is None else relative(q, k)
            if mask is None:
                return q, k, bias
            numbers = mask.to(q.dtype)
            return q, k, numbers if bias is None else bias + numbers

        return MultiHeadAttention.forward(attention, x, memory, relative=with_mask)

    for attention in _all(MultiHeadAttention, model):
        attention.forward = partial(added, attention)  # type: ignore[method-assign]


# ---- blocks


def leave_out_residuals(model: nn.Module) -> None:
    """Add nothing to the output of sublayers."""
    for block in _all(Block, model):
        block.attention_skip = block.feed_forward_skip = _nothing


def add_normed(model: nn.Module) -> None:
    """Add norm(x), which a sublayer read, in the place of x."""
    for block in _all(Block, model):
        block.attention_skip = block.feed_forward_skip = _normed


def add_normed_before_feed_forward(model: nn.Module) -> None:
    """Do so for feed-forward layers only."""
    for block in _all(Block, model):
        block.feed_forward_skip = _normed


def _nothing(x: Tensor, normed: Tensor) -> Tensor | None:
    return None


def _normed(x: Tensor, normed: Tensor) -> Tensor | None:
    return normed


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


def share_norms(model: nn.Module) -> None:
    """Use the norm of self-attention for all sublayers of a block."""
    for block in _all(Block, model):
        if block.cross_attention is not None:
            block.cross_attention_norm = SharedNorm(block.self_attention_norm)
        if block.feed_forward is not None:
            block.feed_forward_norm = SharedNorm(block.self_attention_norm)


def drop_after_norms(model: nn.Module) -> None:
    """Move dropout from what a sublayer adds to what a norm returns."""

    def dropped(share: float, norm: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        return F.dropout(output, share, norm.training)

    for block in _all(Block, model):
        share, block.dropout.p = block.dropout.p, 0.0
        if share:  # else it was moved already, or there is none
            for name, norm in block.named_children():
                if name.endswith("_norm"):
                    norm.register_forward_hook(partial(dropped, share))


def divide_by_sample_deviation(model: nn.Module) -> None:
    """Divide by the root of the sum of squares over n - 1. Raises ValueError without LayerNorm."""

    def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
        scaled = (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + norm.eps).rsqrt()
        return scaled * norm.weight + norm.bias

    norms = list(_all(nn.LayerNorm, model))
    if not norms:
        raise ValueError(f"A {type(model).__name__} has no LayerNorm.")
    for norm in norms:
        norm.forward = partial(normed, norm)  # type: ignore[method-assign]
