"""Fast equals of the layers, which the builders use in their place.

Each class has the name, the parameters and the results of the plain one that it extends, and
overrides what it computes in less time. The plain classes are complete without them.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tfm_core.layers import attention, blocks, patches, recorder
from tfm_core.layers.blocks import Block, tokens_at
from tfm_core.layers.relative import Relative

_SAFE = 50.0
"""Scores up to this size need no maximum taken off: their exponentials are far from overflow."""

_REGISTER = 16
"""Numbers in the widest vector register; rows of so many keys are what the fused kernel is for."""

_FEW = 16384
"""Scores up to which the calls of these steps cost more than the kernel's rows."""

_NOTHING = 1e-25
"""Less than any sum of exponentials of safe scores: that of a row in which nothing is allowed."""


class MultiHeadAttention(attention.MultiHeadAttention):
    """Uses ``short_attention`` where that is faster.

    A fused kernel never writes the weights down (Dao et al. 2022, "FlashAttention"), which pays for
    long sequences. Over a dozen keys the weights are small, and the kernel loses time on short
    rows: it takes the exponentials of what does not fill a vector register one by one. Here all
    exponentials are taken at once, without a maximum where none is needed, and rows are summed by
    one product with ones.
    """

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        """Return the weighted sums of values (B, H, Q, D)."""
        has_dropout = self.training and self.dropout
        if bias is None and self.sink is None and not has_dropout and is_short(q, k):
            if self.has_sink:
                k, v, mask, _bias = attention.with_sink(k, v, mask, None, None)
            return short_attention(q, k, v, mask, 1 / self.divisor)
        return super().attend(q, k, v, mask, bias)


def is_short(q: Tensor, k: Tensor) -> bool:
    """Return whether ``short_attention`` is faster for q (B, H, Q, D) and k (B, H, K, D)."""
    return (
        not torch.compiler.is_compiling()  # first: sizes asked for would be fixed in an export
        and k.size(-2) < _REGISTER
        and q.device.type == "cpu"
        and q.dtype == torch.float32
        and q.size(0) * q.size(1) * q.size(2) * k.size(2) > _FEW
        and not torch.is_autocast_enabled("cpu")
    )


def short_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Return ``attention_weights(...) @ v`` without bias or dropout, float32, as (B, H, Q, D).

    q: (B, H, Q, D), k and v: (B, H, K, D), mask: bool, broadcastable to (B, H, Q, K); scale: what
    dot products are multiplied by. A query that may attend to nothing gets zeros.
    """
    out: Tensor = _ShortAttention.apply(q, k, v, mask, scale)  # type: ignore[no-untyped-call]
    return out


class _ShortAttention(torch.autograd.Function):
    """Weights are kept as exponentials and, for each row, one over their sum."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, s: float) -> Tensor:
        scaled = torch.mul(q, s, out=torch.empty(q.shape)).flatten(0, 1)  # (B * H, Q, D)
        keys, values = k.reshape(-1, *k.shape[2:]), v.reshape(-1, *v.shape[2:])
        powers = torch.bmm(scaled, keys.mT)  # (B * H, Q, K)
        wide = powers.view(*q.shape[:3], -1)
        least, most = powers.aminmax()
        if not bool((least > -_SAFE) & (most < _SAFE)):
            if mask is not None:
                wide.masked_fill_(~mask, torch.finfo(powers.dtype).min)
            powers.sub_(powers.amax(-1, keepdim=True))
        powers.exp_()
        if mask is not None:
            wide.mul_(mask.to(powers.dtype))
        share = _row_sums(powers).clamp_min_(_NOTHING).reciprocal_()  # (B * H, Q, 1)
        heads = torch.bmm(powers, values).mul_(share)
        ctx.save_for_backward(scaled, keys, values, powers, share, heads)
        ctx.scale, ctx.n_heads = s, q.size(1)
        return heads.view(q.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, powers, share, heads = ctx.saved_tensors
        shape = gradient.shape
        given = torch.mul(gradient, share.view(*shape[:3], 1), out=torch.empty(shape))
        given = given.view(heads.shape)
        slope = torch.bmm(given, v.mT).sub_(_row_sums(given * heads)).mul_(powers)
        parts = (
            torch.bmm(slope, k).mul_(ctx.scale),
            torch.bmm(slope.mT, q),
            torch.bmm(powers.mT, given),
        )
        return *(part.view(shape[0], shape[1], *part.shape[1:]) for part in parts), None, None


def _row_sums(x: Tensor) -> Tensor:
    """Return the sums over the last axis, (..., 1), by a product with ones: quick on short rows."""
    ones = x.new_ones(x.size(-1))
    return torch.mv(x.view(-1, x.size(-1)), ones).view(*x.shape[:-1], 1)


class Stack(blocks.Stack):
    """Where a few tokens are read, they alone go through the last block."""

    def at(self, positions: Tensor, x: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Return the output at positions (B, R) alone: (B, R, d_model)."""
        if recorder.active():  # recorders and interventions get all tokens
            return super().at(positions, x, mask=mask)
        *before, last = self.layers
        *masks, last_mask = self.masks(mask, x.size(1))
        for block, own in zip(before, masks, strict=True):
            x = self._pass(block, x, mask=own, relative=self.relative)
        assert isinstance(last, Block)
        last_at = partial(block_at, last, positions)
        return self._normed(self._pass(last_at, x, mask=last_mask, relative=self.relative))


def block_at(
    block: Block,
    positions: Tensor,
    x: Tensor,
    *,
    mask: Tensor | None = None,
    relative: Relative | None = None,
) -> Tensor:
    """Return a block's output at positions (B, R) alone, without a memory: (B, R, d_model).

    Every token supplies keys and values; only those at ``positions`` supply queries.
    """
    mask = _rows_at(mask, positions)
    relative_at = None if relative is None else partial(relative, at=positions)

    def attend(y: Tensor) -> Tensor:
        few = tokens_at(y, positions)
        out: Tensor = block.self_attention(few, y, mask=mask, relative=relative_at)
        return out

    def skip(x: Tensor, y: Tensor) -> Tensor | None:
        skipped = block.attention_skip(x, y)
        return None if skipped is None else tokens_at(skipped, positions)

    x = block.join(x, block.self_attention_norm, attend, skip)
    if block.feed_forward is None:
        return x
    return block.join(x, block.feed_forward_norm, block.feed_forward, block.feed_forward_skip)


def _rows_at(mask: Tensor | None, positions: Tensor) -> Tensor | None:
    """Return the mask of queries at positions (B, R): (B, H or 1, R, K), or one row for all."""
    if mask is None or mask.size(-2) == 1:
        return mask
    mask = mask[(None,) * (4 - mask.ndim)]  # (1 or B, 1 or H, Q, K)
    rows = positions[:, None, :, None].expand(-1, mask.size(1), -1, mask.size(-1))
    return mask.expand(len(positions), -1, -1, -1).gather(2, rows)


class ConvStem(patches.ConvStem):
    """Two matrix products in place of a convolution and a cut, while it trains on a CPU."""

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, C, H, W) to (B, n_patches, d_model)."""
        is_plain = torch.compiler.is_compiling() or recorder.active()
        if self.training and images.device.type == "cpu" and not is_plain:
            return self._by_products(images)
        return super().forward(images)

    def _by_products(self, images: Tensor) -> Tensor:
        """Compute the same with the convolution's outputs in the order of patches from the start.

        With few channels, forward and backward take about 0.6 of the time on a CPU.
        """
        batch, channels, height, width = images.shape
        size, projection = self.patches.patch_size, self.patches.projection
        n_patches = (height // size) * (width // size)
        indices = _windows(channels, height, width, size)
        windows = F.pad(images, (1, 1, 1, 1)).flatten(1).index_select(1, indices)
        kernels = self.convolution.weight.flatten(1)  # (width, C * 9)
        convolved = F.linear(windows.view(-1, kernels.size(1)), kernels, self.convolution.bias)
        cut = F.gelu(convolved).view(batch, n_patches, -1)
        # each row of the projection, from channel, row, column to row, column, channel
        weight = projection.weight.view(-1, len(kernels), size * size).mT.flatten(1)
        return F.linear(cut, weight, projection.bias)


@cache
def _windows(channels: int, height: int, width: int, patch_size: int) -> Tensor:
    """Return where a picture with a border of one pixel has what a 3x3 kernel sees.

    int64 (n_patches * patch_size^2 * channels * 9,): of every pixel, patch by patch, the C * 3 * 3
    around it, as places in the flattened (C, H + 2, W + 2).
    """
    shape = (channels, height + 2, width + 2)
    places = torch.arange(math.prod(shape)).view(shape).float()
    around = F.unfold(places[None], 3)[0].view(-1, height, width)  # (C * 9, H, W)
    cut = patches.patchify(around[None], patch_size).view(-1, len(around), patch_size**2)
    return cut.mT.flatten().long()


class LSTM(nn.LSTM):
    """Runs in fp32 under an autocast that the CPU has no kernel for.

    Without AVX-512, PyTorch asks oneDNN for one all the same, and gets an error.
    """

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Any:  # type: ignore[override]
        """Return the states and the last state of each layer, as ``nn.LSTM`` does."""
        is_autocast = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not is_autocast or has_kernel(torch.get_autocast_dtype("cpu")):
            return super().forward(x, state)
        with torch.autocast("cpu", enabled=False):
            return super().forward(
                x.float(), None if state is None else (state[0].float(), state[1].float())
            )


@cache
def has_kernel(dtype: torch.dtype) -> bool:
    """Return whether this CPU can run an LSTM under autocast to ``dtype``: a tiny one is tried."""
    state = (torch.zeros(1, 1, 1), torch.zeros(1, 1, 1))
    weights = [torch.zeros(4, 1), torch.zeros(4, 1), torch.zeros(4), torch.zeros(4)]
    try:
        with torch.autocast("cpu", dtype=dtype):
            torch.lstm(torch.zeros(1, 1, 1), state, weights, True, 1, 0.0, True, False, False)
    except RuntimeError:
        return False
    return True
