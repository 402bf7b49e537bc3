"""Encoder and decoder blocks: sublayers joined by residual connections and norms.

Post-norm is the paper's ``norm(x + sublayer(x))`` (Vaswani et al. 2017, section 3.1); pre-norm is
``x + sublayer(norm(x))`` (Xiong et al. 2020), which trains without a careful warm-up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.experts import MixtureOfExperts
from tfm_core.layers.feed_forward import FeedForward
from tfm_core.layers.masks import within
from tfm_core.layers.relative import Relative, RelativeFunction

Skip = Callable[[Tensor, Tensor], Tensor | None]
"""From a sublayer's x and norm(x) to what is added to its output; None where nothing is."""


def identity_skip(x: Tensor, normed: Tensor) -> Tensor | None:
    """The residual connection of He et al. 2016: x itself, whatever the sublayer reads."""
    return x


class Block(nn.Module):
    """Self-attention, cross-attention if there is one, and feed-forward, if there is one.

    Without cross-attention it is an encoder block, or the block of a decoder-only model (the mask
    makes the difference); with it, a decoder block.
    """

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward | MixtureOfExperts | None,
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
        self.feed_forward = feed_forward
        if feed_forward is not None:
            self.feed_forward_norm = norm()
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
        relative: RelativeFunction | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape.

        mask: over (B, H, T, T); memory: (B, S, d_model) for cross-attention, with memory_mask over
        (B, H, T, S); relative: the positions that act in self-attention, if any.
        """
        came = x
        attend = partial(self.self_attention, mask=mask, relative=relative)
        x = self.join(x, self.self_attention_norm, attend, self.attention_skip)
        if self.cross_attention is not None:
            attend = partial(self.cross_attention, memory=memory, mask=memory_mask)
            x = self.join(x, self.cross_attention_norm, attend, self.attention_skip)
        if self.feed_forward is not None:
            x = self.join(x, self.feed_forward_norm, self.feed_forward, self.feed_forward_skip)
        x = recorder.changed(self, "residual", x, came)
        recorder.record(self, residual=x)
        return x

    def join(
        self,
        x: Tensor,
        norm: Callable[[Tensor], Tensor],
        sublayer: Callable[[Tensor], Tensor],
        skip: Skip,
    ) -> Tensor:
        """Return x: (B, T, d_model) after a sublayer, its residual connection and its norm.

        The steps are recorded under the name of ``norm``.
        """
        normed = recorder.changed(norm, "normed", norm(x), x) if self.norm_first else x
        change = recorder.changed(norm, "change", sublayer(normed), normed)
        skipped = recorder.changed(norm, "skipped", skip(x, normed), x)
        added = self.dropout(change) if self.training else change  # the call alone takes time
        total = added if skipped is None else skipped + added
        joined = recorder.changed(norm, "joined", total if self.norm_first else norm(total), total)
        recorder.record(
            norm,
            skipped=x if skipped is None else skipped,
            change=change,
            joined=joined,
            normed=normed if self.norm_first else None,
            total=None if self.norm_first else total,
        )
        return joined


def tokens_at(x: Tensor, positions: Tensor) -> Tensor:
    """Return the tokens of x: (B, T, d) at positions (B, R), (B, R, d)."""
    return x.gather(1, positions[..., None].expand(-1, -1, x.size(-1)))


class Stack(nn.Module):
    """N blocks and, after a pre-norm stack, one last norm."""

    def __init__(
        self,
        blocks: list[Block],
        final_norm: nn.Module | None,
        *,
        relative: Relative | None = None,
        windows: tuple[int, ...] = (),
    ) -> None:
        """relative: the positions that act in the self-attention of all blocks, if any.

        windows: of each block, how many tokens away self-attention sees; 0, or (), for all.
        """
        super().__init__()
        self.layers = nn.ModuleList(blocks)
        self.is_checkpointing = False
        self.final_norm = final_norm
        self.relative = relative
        self.windows = windows or (0,) * len(blocks)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape; the arguments are the blocks'."""
        x = recorder.changed(self, "input", x)
        recorder.record(self, input=x, mask=mask)
        for block, own in zip(self.layers, self.masks(mask, x.size(1)), strict=True):
            x = self._pass(
                block, x, mask=own, memory=memory, memory_mask=memory_mask, relative=self.relative
            )
        return self._normed(x)

    def masks(self, mask: Tensor | None, length: int) -> list[Tensor | None]:
        """Return the mask of each block's self-attention over (B, H, T, T), with its window.

        Raises ValueError for a window without a mask.
        """
        if mask is None and any(self.windows):
            raise ValueError("A window narrows a mask, and there is none.")
        by_window = {
            window: None if mask is None else within(mask, length, window)
            for window in set(self.windows)
        }
        return [by_window[window] for window in self.windows]

    def _pass(self, block: Callable[..., Tensor], *args: Any, **settings: Any) -> Tensor:
        """Run one block, under ``torch.utils.checkpoint`` if gradient checkpointing is on."""
        if self.is_checkpointing and torch.is_grad_enabled():
            passed: Tensor = checkpoint(block, *args, use_reentrant=False, **settings)
            return passed
        return block(*args, **settings)

    def at(self, positions: Tensor, x: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Return the output at positions (B, R) alone: (B, R, d_model)."""
        return tokens_at(self(x, mask=mask), positions)

    def _normed(self, x: Tensor) -> Tensor:
        normed = x if self.final_norm is None else self.final_norm(x)
        normed = recorder.changed(self, "output", normed, x)
        recorder.record(self, output=normed)
        return normed


def enable_checkpointing(model: nn.Module) -> None:
    """Let every stack keep of each block its input alone in training, and compute the rest again.

    Gradient checkpointing: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost". The
    second pass draws the same dropout, so the gradients are the same, bit for bit.
    """
    for module in model.modules():
        if isinstance(module, Stack):
            module.is_checkpointing = True
