"""Which axis of each parameter is the residual stream, the vector that every sublayer adds to."""

from __future__ import annotations

import re

from torch import Tensor

_READS = re.compile(r"(.*\.)?(in_projection|up|gate)\.weight|(output|head)\.weight")
_ADDED = re.compile(
    r"(.*\.)?(out_projection|down)\.(weight|bias)|stem\.projection\.(weight|bias)"
    r"|(\w+_embedding\.table\.weight|(\w+_)?positions\.table|cls)"
)
_NORMS = re.compile(
    r"(.*\.)?(self_attention|cross_attention|feed_forward|final)_norm\.(weight|bias)"
)
_NEITHER = re.compile(r"(.*\.)?(in_projection|up|gate)\.bias|(output|head)\.bias")


def is_norm(name: str) -> bool:
    """Return whether a parameter is that of a norm of the stream."""
    return _NORMS.fullmatch(name) is not None


def is_added(name: str) -> bool:
    """Return whether the vectors of a parameter are added to the stream."""
    return _ADDED.fullmatch(name) is not None


def stream_axis(name: str) -> int | None:
    """Return the axis of a parameter that is the stream, None for none of them.

    Raises LookupError for a parameter of which nothing is known here.
    """
    if _READS.fullmatch(name):
        return -1
    if is_added(name):
        return -1 if re.search(r"(table|table\.weight|cls)$", name) else 0
    if is_norm(name):
        return 0
    if _NEITHER.fullmatch(name):
        return None
    raise LookupError(f"Nothing is known of the parameter {name}.")


def reordered(name: str, value: Tensor, order: Tensor) -> Tensor:
    """Return a parameter with the dimensions of the stream in another order."""
    axis = stream_axis(name)
    return value if axis is None else value.index_select(axis, order.to(value.device))
