"""How the maps of a softmax lie in tensors: axes, heads and masks; and what operations do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor


class Place(NamedTuple):
    """Where something runs: the module's name, the number of its call, and what it was called with.

    n_heads: that it, or one around it, says it has; 0 where none does. shape: of the first tensor
    that this one was called with.
    """

    module: str
    call: int
    n_heads: int
    shape: tuple[int, ...]


def memory_of(tensor: Tensor) -> int:
    """Return where the values of a tensor lie, which its views share."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without separate storage
        return id(tensor)


def kept_values(weights: Tensor) -> Tensor:
    """Return weights as float32 on the CPU, in memory of their own."""
    return weights.detach().to("cpu", torch.float32, copy=True).contiguous()


def axes_of(
    one: Tensor, weights: Tensor, axes: tuple[int, int], dim: int, place: Place
) -> tuple[int, int]:
    """Return which axes of weights are the rows and the columns of a product's operand.

    Views keep their strides, also through einsum; of a copy the size of the rows tells.
    """
    if weights.ndim < 2 or one.ndim < 2:
        return 0, dim
    n_rows, n_columns = (one.shape[axis] for axis in axes)
    is_view, columns = memory_of(one) == memory_of(weights), dim
    if is_view and n_columns > 1:
        stride = one.stride(axes[1])
        columns = next((n for n in range(weights.ndim) if _fits(weights, n, stride)), columns)
    rest = [n for n in reversed(range(weights.ndim)) if n != columns]
    if is_view and n_rows > 1:
        fitting = [n for n in rest if _fits(weights, n, one.stride(axes[0]))]
    else:
        is_head = {n for n in rest if weights.shape[n] == place.n_heads > 1}
        fitting = [n for n in rest if weights.shape[n] == n_rows and n not in is_head]
    return (fitting or rest)[0], columns


def _fits(weights: Tensor, axis: int, stride: int) -> bool:
    return weights.stride(axis) == stride and weights.shape[axis] > 1


def as_heads(values: Tensor, place: Place) -> Tensor:
    """Return what lies by queries and keys as (batch, n_heads, query_len, key_len).

    Of further axes, such as windows, the module's own number of heads tells which are heads.
    """
    if values.ndim < 4:
        values = values.reshape(*(1,) * (3 - values.ndim), *values.shape)
        batch, n_heads = values.shape[0], 1
        if place.n_heads > 1 and batch % place.n_heads == 0:
            # unless it is one of several heads that are computed one after the other
            is_one = batch // place.n_heads not in place.shape[:-1] and batch in place.shape[:1]
            if not is_one:
                batch, n_heads = batch // place.n_heads, place.n_heads
        return values.reshape(batch, n_heads, *values.shape[-2:])
    axes = range(values.ndim - 3, 0, -1)
    heads = next((one for one in axes if values.shape[one] == place.n_heads), axes[0])
    return values.movedim(heads, -3).flatten(0, -4)


def is_of_channels(n_rows: int, n_heads: int, place: Place) -> bool:
    """Return whether the rows of a map are the channels of a head, not positions."""
    *positions, width = place.shape or (0,)
    n_positions = {*positions, math.prod(positions[1:])}
    return n_rows * n_heads == width and n_rows not in n_positions


def masked_by(name: str, named: Mapping[str, Any], addends: Sequence[Tensor]) -> Tensor | None:
    """Return what an operation forbids by very low constants; None for nothing.

    addends: what it adds or puts in, of which none holds scores.
    """
    name = name.rstrip("_")
    if name == "masked_fill" and _is_low(named["value"]):
        return cast(Tensor, named["mask"])
    if name == "where":
        taken, other = (
            forbidden_by(one) if any(one is given for given in addends) else torch.tensor(False)
            for one in (named["self"], named["other"])
        )
        return torch.where(named["condition"], taken, other)
    if name == "fill" and _is_low(named["value"]):
        return torch.ones_like(named["self"], dtype=torch.bool)
    if name == "index_put" and _is_low(named["values"]):
        forbidden = torch.zeros_like(named["self"], dtype=torch.bool)
        return forbidden.index_put_(named["indices"], forbidden.new_ones(()))
    found = [forbidden_by(-one if name == "sub" else one) for one in addends]
    return next((one for one in found if bool(one.any())), None)


def _is_low(value: Any) -> bool:
    return bool(torch.as_tensor(value).amax() <= _LOW)


def forbidden_by(mask: Any) -> Tensor:
    """Return where a mask of numbers forbids: there it is very low, and alike in all heads."""
    low = torch.as_tensor(mask) <= _LOW
    if low.ndim > 3:
        low = (low.all(1, keepdim=True) & low) | torch.isneginf(mask)
    return low


def allowed_of(forbidden: Tensor) -> Tensor | None:
    """Return the mask (batch, n_heads, query_len, key_len); None where all is allowed."""
    if not bool(forbidden.any()):
        return None
    if bool((forbidden == forbidden[:1, :1]).all()):
        forbidden = forbidden[:1, :1]
    return ~forbidden.cpu()


_LOW = -5e3
"""Numbers that a mask adds to scores lie below this."""


_SCALES = frozenset({"mul", "mul_", "div", "div_"})
_OPAQUE = ("native_multi_head_attention", "transformer_encoder_layer", "flash", "attention", "attn")


def factor_of(name: str, named: Mapping[str, Any]) -> float:
    """Return by what an operation multiplies a tensor: 1 for all but scaling by one number."""
    if name.startswith("baddbmm"):
        return float(named.get("alpha", 1))
    if name not in _SCALES:
        return 1.0
    one, other = named.get("self"), named.get("other")
    if isinstance(one, Tensor) and one.numel() == 1 and not name.startswith("div"):
        one, other = other, one
    if isinstance(other, Tensor) and other.numel() > 1:
        return 1.0
    number = float(other) if other is not None else 1.0
    return 1 / number if name.startswith("div") and number else number


def axis_of_parameters(name: str, out: Tensor, *, is_left: bool) -> tuple[int, int] | None:
    """Return stride and size of the axis that parameters made, as the left side of a product."""
    if out.ndim < 2:
        return (1, len(out)) if is_left else None
    axis = 1 if name == "convolution" else -2 if is_left else -1
    return out.stride(axis), out.shape[axis]


def is_along_text(named: Mapping[str, Any]) -> bool:
    """Return whether a convolution mixes positions of a sequence, channel by channel."""
    given, kernel = named["input"], named["weight"]
    is_by_channel = named["groups"] == given.shape[1] > 1
    return bool(is_by_channel and given.ndim == 3 and kernel.shape[-1] > 1)


def is_alike(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors lie in memory alike."""
    return one.shape == other.shape and one.stride() == other.stride()


def is_attention(name: str) -> bool:
    """Return whether an operation is a whole attention, by its name."""
    return any(part in name.split("::")[-1] for part in _OPAQUE)


def is_composite(func: Any) -> bool:
    """Return whether an operation consists of others, so that it may run as those."""
    return bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    )


def flat(values: Iterable[Any]) -> Iterable[Any]:
    """Iterate over values and over those in lists and tuples."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from flat(value)
        else:
            yield value
