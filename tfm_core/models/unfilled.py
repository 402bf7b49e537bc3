"""Models of which only names and shapes matter: no number of their weights is ever drawn.

What is never written takes no memory, so this is as light as the ``meta`` device; and that makes
PyTorch import its compiler for the first model, which takes longer than all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_FILLING = {"normal_", "uniform_", "trunc_normal_"}


class _NothingDrawn(TorchFunctionMode):
    """Leaves tensors as they are where numbers would be drawn into them."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _FILLING:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def unfilled() -> Iterator[None]:
    """Build models of names and shapes; their weights hold whatever lay in memory."""
    with torch.device("cpu"), _NothingDrawn():
        yield
