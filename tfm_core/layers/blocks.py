"""Encoder and decoder blocks: sublayers joined by residual connections and norms.

Post-norm is the paper's ``norm(x + sublayer(x))`` (Vaswani et al. 2017, section 3.1); pre-norm is
``x + sublayer(norm(x))`` (Xiong et al. 2020), which trains without a careful warm-up. Two mistakes
are there to be seen: no sum at all, and a sum with ``norm(x)`` in the place of ``x``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.feed_forward import FeedForward
from tfm_core.layers.norms import make_norm
from tfm_core.layers.relative import Relative
from tfm_core.variants.norms import NORM_EPS


class SharedNorm(nn.Module):
    """Another sublayer's norm, used here too; a module of its own, so that captures differ."""

    def __init__(self, norm: nn.Module) -> None:
        """Use the same scale and shift as ``norm``."""
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """Map x: (B, T, d_model) to the same shape."""
        out: Tensor = self.norm(x)
        return out


class Block(nn.Module):
    """Self-attention, cross-attention if ``has_cross``, and feed-forward.

    Without cross-attention it is an encoder block, or the block of a decoder-only model (the mask
    makes the difference); with it, a decoder block.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        has_cross: bool = False,
        dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "layernorm",
        norm_first: bool = False,
        bias: bool = True,
        eps: float = NORM_EPS,
        attend: Callable[[], MultiHeadAttention] | None = None,
        has_shared_norm: bool = False,
        has_residual: bool = True,
        normed_residuals: Collection[str] = (),
    ) -> None:
        """attend: makes each attention, where it is not the usual one of these sizes.

        has_shared_norm: whether all sublayers use one norm. has_residual: whether a sublayer's
        output is added to anything; normed_residuals: of "attention" and "feed_forward" those
        whose output is added to norm(x), not to x, in a pre-norm block. Raise ValueError when
        n_heads does not divide d_model.
        """
        super().__init__()
        self.norm_first = norm_first
        self.has_residual, self.normed_residuals = has_residual, frozenset(normed_residuals)
        attend = attend or partial(MultiHeadAttention, d_model, n_heads, dropout=dropout, bias=bias)
        self.self_attention = attend()
        self.self_attention_norm = make_norm(norm, d_model, eps)
        another: Callable[[], nn.Module] = partial(make_norm, norm, d_model, eps)
        if has_shared_norm:
            another = partial(SharedNorm, self.self_attention_norm)
        if has_cross:
            self.cross_attention = attend()
            self.cross_attention_norm = another()
        self.has_cross = has_cross
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=dropout, bias=bias
        )
        self.feed_forward_norm = another()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        relative: Relative | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape.

        mask: over (B, H, T, T); memory: (B, S, d_model) for cross-attention, with memory_mask over
        (B, H, T, S); relative: the positions that act in self-attention, if any.
        """
        attend = partial(self.self_attention, mask=mask, relative=relative)
        x = self._join("attention", x, self.self_attention_norm, attend)
        if self.has_cross:
            look = partial(self.cross_attention, memory=memory, mask=memory_mask)
            x = self._join("attention", x, self.cross_attention_norm, look)
        x = self._join("feed_forward", x, self.feed_forward_norm, self.feed_forward)
        recorder.record(self, residual=x)
        return x

    def at(
        self,
        query_positions: Tensor,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        relative: Relative | None = None,
    ) -> Tensor:
        """Return what ``forward`` says at positions (B, R), without a memory: (B, R, d_model).

        All tokens are attended to, and only these ask: of the others, keys and values are computed.
        """
        y = self.self_attention_norm(x) if self.norm_first else x
        if relative is not None:
            relative = partial(relative, query_positions=query_positions)
        mask = _rows_at(mask, query_positions)
        change = self.self_attention(tokens_at(y, query_positions), y, mask=mask, relative=relative)
        skipped = y if "attention" in self.normed_residuals else x
        x = self._added(tokens_at(skipped, query_positions), change)
        x = x if self.norm_first else self.self_attention_norm(x)
        return self._join("feed_forward", x, self.feed_forward_norm, self.feed_forward)

    def _join(
        self,
        kind: str,
        x: Tensor,
        norm: Callable[[Tensor], Tensor],
        sublayer: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Join a sublayer; where somebody records, its norm is a module."""
        if self.norm_first:
            normed = norm(x)
            change = sublayer(normed)
            skipped = normed if kind in self.normed_residuals else x
            total = self._added(skipped, change)
            recorder.record(
                cast("nn.Module", norm), skipped=skipped, normed=normed, change=change, joined=total
            )
            return total
        change = sublayer(x)
        total = self._added(x, change)
        joined = norm(total)
        recorder.record(
            cast("nn.Module", norm), skipped=x, change=change, total=total, joined=joined
        )
        return joined

    def _added(self, skipped: Tensor, change: Tensor) -> Tensor:
        """Return the residual's sum, or the change alone where there is no residual."""
        if self.training:  # a call of what does nothing is not for nothing
            change = self.dropout(change)
        return skipped + change if self.has_residual else change


def tokens_at(x: Tensor, positions: Tensor) -> Tensor:
    """Return the tokens of x: (B, T, d) at positions (B, R), (B, R, d)."""
    return x.gather(1, positions[..., None].expand(-1, -1, x.size(-1)))


def _rows_at(mask: Tensor | None, positions: Tensor) -> Tensor | None:
    """Return the rows of a mask at positions (B, R): (B, 1 or H, R, K), or one row for all."""
    if mask is None or mask.size(-2) == 1:
        return mask
    mask = mask[(None,) * (4 - mask.ndim)]  # (1 or B, 1 or H, Q, K)
    rows = positions[:, None, :, None].expand(-1, mask.size(1), -1, mask.size(-1))
    return mask.expand(len(positions), -1, -1, -1).gather(2, rows)


class Stack(nn.Module):
    """N blocks and, after a pre-norm stack, one last norm."""

    def __init__(
        self,
        blocks: list[Block],
        final_norm: nn.Module | None,
        *,
        relative: nn.Module | None = None,
    ) -> None:
        """relative: the positions that act in the self-attention of all blocks, if any."""
        super().__init__()
        self.layers = nn.ModuleList(blocks)
        self.forgets_blocks = False
        self.final_norm = final_norm
        self.relative = relative

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape; the arguments are the blocks'."""
        recorder.record(self, input=x)
        for block in self.layers:
            x = self._pass(
                block, x, mask=mask, memory=memory, memory_mask=memory_mask, relative=self.relative
            )
        return self._normed(x)

    def _pass(self, block: Callable[..., Tensor], *args: Any, **settings: Any) -> Tensor:
        """Call a block; where blocks are forgotten, keep its input alone for the way back."""
        if self.forgets_blocks and torch.is_grad_enabled():
            passed: Tensor = checkpoint(block, *args, use_reentrant=False, **settings)
            return passed
        return block(*args, **settings)

    def at(self, query_positions: Tensor, x: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Return what ``forward`` says at positions (B, R) alone: (B, R, d_model).

        The last block computes nothing else, unless somebody watches, who sees everything.
        """
        if recorder.active():
            return tokens_at(self(x, mask=mask), query_positions)
        *blocks, last = self.layers
        for block in blocks:
            x = self._pass(block, x, mask=mask, relative=self.relative)
        assert isinstance(last, Block)
        x = self._pass(last.at, query_positions, x, mask=mask, relative=self.relative)
        return self._normed(x)

    def _normed(self, x: Tensor) -> Tensor:
        x = x if self.final_norm is None else self.final_norm(x)
        recorder.record(self, output=x)
        return x


def forget_blocks(model: nn.Module) -> None:
    """Let every stack keep of each block its input alone in training, and compute the rest again.

    Gradient checkpointing: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost". The
    second pass draws the same dropout, so the gradients are the same, bit for bit.
    """
    for module in model.modules():
        if isinstance(module, Stack):
            module.forgets_blocks = True
