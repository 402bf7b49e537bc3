"""Hook points: a layer names its tensors, and the active recorder, if there is one, gets them.

``record(self, scores=scores)`` is a hook point, as in TransformerLens: without a recorder it costs
one look-up and does nothing. The recorder is a ContextVar, so threads and sessions never see each
other's tensors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor


class ActivationRecorder(Protocol):
    """Receives the tensors of all hook points."""

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Return whether it keeps tensors of one of these kinds of ``module``."""

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Handle the named ``tensors`` of ``module``."""


_recorder: ContextVar[ActivationRecorder | None] = ContextVar("recorder", default=None)


def active() -> bool:
    """Return whether a recorder is active, whatever it keeps."""
    # while torch compiles, reading a ContextVar would cut the traced graph in two
    return not torch.compiler.is_compiling() and _recorder.get() is not None


def is_wanted(module: object, kinds: Collection[str]) -> bool:
    """Return whether the active recorder, if there is one, keeps any of these of ``module``.

    What is costly to make is left out where nobody keeps it: the weights of an attention, say.
    """
    if torch.compiler.is_compiling():
        return False
    recorder = _recorder.get()
    return recorder is not None and recorder.wants(module, kinds)


def record(module: object, **tensors: Tensor | None) -> None:
    """Give the active recorder, if there is one, the tensors of a module that are not None."""
    if torch.compiler.is_compiling():
        return
    recorder = _recorder.get()
    if recorder is not None:
        named = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        recorder.record(module, named)


@contextmanager
def recording(recorder: ActivationRecorder) -> Iterator[None]:
    """Make ``recorder`` the active one, in this context only."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)
