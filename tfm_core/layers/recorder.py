"""Where layers record their activations while a recorder is in force.

A layer calls ``record`` with its tensors; without a recorder in force that is one look-up and
nothing is kept. It is a ContextVar: threads and sessions never see each other's tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor, nn


class ActivationRecorder(Protocol):
    """Takes what layers record."""

    def record(self, module: nn.Module, tensors: dict[str, Tensor]) -> None:
        """Keep ``tensors`` of ``module``, or not."""


_recorder: ContextVar[ActivationRecorder | None] = ContextVar("recorder", default=None)


def active() -> bool:
    """Return whether somebody is watching, so that a layer must take its explicit path."""
    return not torch.compiler.is_compiling() and _recorder.get() is not None


def record(module: nn.Module, **tensors: Tensor) -> None:
    """Hand tensors to the recorder in force, if there is one."""
    if torch.compiler.is_compiling():  # a ContextVar would cut the traced graph in two
        return
    recorder = _recorder.get()
    if recorder is not None:
        recorder.record(module, tensors)


@contextmanager
def recording(recorder: ActivationRecorder) -> Iterator[None]:
    """Put ``recorder`` in force for this context only."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)
