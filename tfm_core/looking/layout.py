"""How the maps of a softmax lie in the tensors of a forward pass: axes, heads and masks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tfm_core.looking.recorder import Place, Softmax


def memory_of(tensor: Tensor) -> int:
    """Return where the values of a tensor lie, which its views share."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without separate storage
        return id(tensor)


def kept_values(weights: Tensor) -> Tensor:
    """Return weights as float32 on the CPU, in memory of their own."""
    return weights.detach().to("cpu", torch.float32, copy=True).contiguous()


def axes_of(one: Tensor, weights: Tensor, axes: tuple[int, int], made: Softmax) -> tuple[int, int]:
    """Return which axes of weights are the rows and the columns of a product's operand.

    Views keep their strides, also through einsum; of a copy the size of the rows tells.
    """
    if weights.ndim < 2 or one.ndim < 2:
        return 0, made.dim
    n_rows, n_columns = (one.shape[axis] for axis in axes)
    is_view, columns = memory_of(one) == memory_of(weights), made.dim
    if is_view and n_columns > 1:
        stride = one.stride(axes[1])
        columns = next((n for n in range(weights.ndim) if _fits(weights, n, stride)), columns)
    rest = [n for n in reversed(range(weights.ndim)) if n != columns]
    if is_view and n_rows > 1:
        fitting = [n for n in rest if _fits(weights, n, one.stride(axes[0]))]
    else:
        is_head = {n for n in rest if weights.shape[n] == made.place.n_heads > 1}
        fitting = [n for n in rest if weights.shape[n] == n_rows and n not in is_head]
    return (fitting or rest)[0], columns


def _fits(weights: Tensor, axis: int, stride: int) -> bool:
    return weights.stride(axis) == stride and weights.shape[axis] > 1


def as_heads(shape: tuple[int, ...], place: Place) -> tuple[int, int, int, int]:
    """Return (batch, n_heads, query_len, key_len) of a softmax's shape."""
    *rest, n_queries, n_keys = shape
    batch, n_heads = (rest or [1])[0], math.prod(rest[1:])
    if len(rest) == 1 and place.n_heads > 1 and batch % place.n_heads == 0:
        # unless it is one of several heads that are computed one after the other
        is_one = batch // place.n_heads not in place.shape[:-1] and batch in place.shape[:1]
        if not is_one:
            batch, n_heads = batch // place.n_heads, place.n_heads
    return batch, n_heads, n_queries, n_keys


def allowed_of(scores: Tensor, weights: Tensor) -> Tensor | None:
    """Return the mask that scores show: very low ones are forbidden. None where all is allowed."""
    lowest = -1e4 if scores.dtype in (torch.float16, torch.bfloat16) else -1e8
    scores = scores.detach()
    allowed = (scores > lowest) & ~((scores < -5e3) & (weights == 0))
    if bool(allowed.all()):
        return None
    if bool((allowed == allowed[:1, :1]).all()):
        allowed = allowed[:1, :1]
    return allowed.cpu()
