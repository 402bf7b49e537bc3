"""Where layers leave what somebody asked to see.

A layer calls ``record`` with its tensors; without a tape in force that is one look-up and nothing
is kept. The tape is a ContextVar: threads and sessions never see each other's tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor, nn


class Tape(Protocol):
    """Takes what layers record."""

    def record(self, module: nn.Module, tensors: dict[str, Tensor]) -> None:
        """Keep ``tensors`` of ``module``, or not."""


_tape: ContextVar[Tape | None] = ContextVar("tape", default=None)


def active() -> bool:
    """Return whether somebody is watching, so that a layer must take its explicit path."""
    return not torch.compiler.is_compiling() and _tape.get() is not None


def record(module: nn.Module, **tensors: Tensor) -> None:
    """Hand tensors to the tape in force, if there is one."""
    if torch.compiler.is_compiling():  # a ContextVar would cut the traced graph in two
        return
    tape = _tape.get()
    if tape is not None:
        tape.record(module, tensors)


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Put ``tape`` in force for this context only."""
    token = _tape.set(tape)
    try:
        yield
    finally:
        _tape.reset(token)
