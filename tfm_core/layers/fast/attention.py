"""Multi-head attention with three plain steps over few keys, which beat the fused kernel on a CPU.

A fused kernel never writes the weights down (Dao et al. 2022, "FlashAttention"), which pays for
long sequences. Over a dozen keys the weights are small, and the kernel loses its time on short
rows: it takes the exponentials of what does not fill a vector register one by one.
Here all exponentials are taken at once, without a maximum where none is needed, and rows are summed
by one product with ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfm_core.layers import attention

_SAFE = 50.0
"""Scores up to this size need no maximum taken off: their exponentials are far from overflow."""

_REGISTER = 16
"""Numbers in the widest vector register; rows of so many keys are what the fused kernel is for."""

_FEW = 16384
"""Scores up to which the calls of these steps cost more than the kernel's rows."""

_NOTHING = 1e-25
"""Less than any sum of exponentials of safe scores: that of a row in which nothing is allowed."""


class MultiHeadAttention(attention.MultiHeadAttention):
    """Takes ``short_attention`` where it is the quicker one."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        """Return the weighted sums of values (B, H, Q, D)."""
        has_dropout = self.training and self.dropout
        if bias is None and not has_dropout and is_short(q, k):
            return short_attention(q, k, v, mask, 1 / self.divisor)
        return super().attend(q, k, v, mask, bias)


def is_short(q: Tensor, k: Tensor) -> bool:
    """Say whether ``short_attention`` is the quicker one for q (B, H, Q, D) and k (B, H, K, D)."""
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
