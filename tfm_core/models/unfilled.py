"""Models of which only names and shapes matter: no weight takes memory, no number is drawn.

Their weights are on the ``meta`` device. ``torch.device("meta")`` would put there what is computed
for positions, too, and fill what it makes: both make PyTorch import its compiler for the first
model, which takes longer than all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_FILLING = {"normal_", "uniform_", "trunc_normal_"}


class _NothingDrawn(TorchFunctionMode):
    """Makes empty tensors on ``meta``, and leaves them so where numbers would be drawn."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty and kwargs.get("device") is None:
            return func(*args, **{**kwargs, "device": "meta"})
        if getattr(func, "__name__", "") in _FILLING:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def unfilled() -> Iterator[None]:
    """Build models of names and shapes; what they compute (tables of positions) is real.

    Who gives such a model something to work on moves it as a whole: ``model.to("meta")``.
    """
    with torch.device("cpu"), _NothingDrawn():
        yield
