"""Encoder and decoder blocks: sublayers joined by residual connections and norms.

Post-norm is the paper's ``norm(x + sublayer(x))`` (Vaswani et al. 2017, section 3.1); pre-norm is
``x + sublayer(norm(x))`` (Xiong et al. 2020), which trains without a careful warm-up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.feed_forward import FeedForward
from tfm_core.layers.relative import Relative

Skip = Callable[[Tensor, Tensor], Tensor | None]
"""From a sublayer's x and norm(x) to what is added to its output; None where nothing is."""


def identity_skip(x: Tensor, normed: Tensor) -> Tensor | None:
    """The residual connection of He et al. 2016: x itself, whatever the sublayer reads."""
    return x


class Block(nn.Module):
    """Self-attention, cross-attention if there is one, and feed-forward.

    Without cross-attention it is an encoder block, or the block of a decoder-only model (the mask
    makes the difference); with it, a decoder block.
    """

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        norm: Callable[[], nn.Module],
        *,
        cross_attention: MultiHeadAttention | None = None,
        norm_first: bool = False,
        dropout: float = 0.0,
    ) -> None:
        """norm: makes the norm of each sublayer; dropout: of what a sublayer adds."""
        super().__init__()
        self.norm_first = norm_first
        self.self_attention, self.self_attention_norm = self_attention, norm()
        self.cross_attention = cross_attention
        if cross_attention is not None:
            self.cross_attention_norm = norm()
        self.feed_forward, self.feed_forward_norm = feed_forward, norm()
        self.dropout = nn.Dropout(dropout)
        self.attention_skip: Skip = identity_skip
        self.feed_forward_skip: Skip = identity_skip

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
        x = self.join(x, self.self_attention_norm, attend, self.attention_skip)
        if self.cross_attention is not None:
            look = partial(self.cross_attention, memory=memory, mask=memory_mask)
            x = self.join(x, self.cross_attention_norm, look, self.attention_skip)
        x = self.join(x, self.feed_forward_norm, self.feed_forward, self.feed_forward_skip)
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
        skipped = self.attention_skip(x, y)
        x = self._sum(None if skipped is None else tokens_at(skipped, query_positions), change)
        x = x if self.norm_first else self.self_attention_norm(x)
        return self.join(x, self.feed_forward_norm, self.feed_forward, self.feed_forward_skip)

    def join(
        self,
        x: Tensor,
        norm: Callable[[Tensor], Tensor],
        sublayer: Callable[[Tensor], Tensor],
        skip: Skip,
    ) -> Tensor:
        """Return x: (B, T, d_model) after a sublayer, its residual connection and its norm.

        Inside a capture ``norm`` must be a module, under whose name the steps are recorded.
        """
        normed = norm(x) if self.norm_first else x
        change = sublayer(normed)
        skipped = skip(x, normed)
        total = self._sum(skipped, change)
        joined = total if self.norm_first else norm(total)
        if recorder.active():
            steps = {"normed": normed} if self.norm_first else {"total": total}
            skipped = x if skipped is None else skipped
            module = cast("nn.Module", norm)
            recorder.record(module, skipped=skipped, change=change, joined=joined, **steps)
        return joined

    def _sum(self, skipped: Tensor | None, change: Tensor) -> Tensor:
        """Return the residual's sum, or the change alone where nothing is added to it."""
        if self.training:  # a call of what does nothing is not for nothing
            change = self.dropout(change)
        return change if skipped is None else skipped + change


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
