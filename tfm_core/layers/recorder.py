"""Hook points: a layer names its tensors; a recorder sees them, an intervention replaces them.

``record(self, scores=scores)`` and ``changed(self, "merged", merged)`` are hook points, as in
TransformerLens: where nothing is active they cost one look-up and do nothing. What is active is a
ContextVar, so threads and sessions never see each other's tensors or interventions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

Change = Callable[[Any, Any], Any]
"""From the value at a hook point, and what it was made from, to the value that replaces it."""

CHANGEABLE = frozenset(
    {
        "input",
        "output",
        "residual",
        "normed",
        "skipped",
        "change",
        "joined",
        "placed",
        "mask",
        "relative",
        "weights",
        "merged",
    }
)
"""The kinds of hook points that call ``changed``."""

_T = TypeVar("_T")


class ActivationRecorder(Protocol):
    """Receives the tensors of all hook points."""

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Return whether it keeps tensors of one of these kinds of ``module``."""

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Handle the named ``tensors`` of ``module``."""


class _Active(NamedTuple):
    """The active recorder, and interventions by module and kind, the outermost first."""

    recorder: ActivationRecorder | None
    changes: Mapping[tuple[int, str], tuple[Change, ...]]


_active: ContextVar[_Active | None] = ContextVar("active", default=None)


def active() -> bool:
    """Return whether a recorder or an intervention is active, whatever it keeps or changes."""
    # while torch compiles, reading a ContextVar would cut the traced graph in two
    return not torch.compiler.is_compiling() and _active.get() is not None


def is_wanted(module: object, kinds: Collection[str]) -> bool:
    """Return whether the active recorder, if there is one, keeps any of these of ``module``.

    What is costly to make is left out where nobody keeps it: the weights of an attention, say.
    """
    if torch.compiler.is_compiling():
        return False
    now = _active.get()
    return now is not None and now.recorder is not None and now.recorder.wants(module, kinds)


def is_changed(module: object, kind: str) -> bool:
    """Return whether an intervention replaces this kind of ``module``."""
    if torch.compiler.is_compiling():
        return False
    now = _active.get()
    return now is not None and (id(module), kind) in now.changes


def record(module: object, **tensors: Tensor | None) -> None:
    """Give the active recorder, if there is one, the tensors of a module that are not None."""
    if torch.compiler.is_compiling():
        return
    now = _active.get()
    if now is not None and now.recorder is not None:
        named = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        now.recorder.record(module, named)


def changed(module: object, kind: str, value: _T, made_from: object = None) -> _T:
    """Return a value of a module, or what the active interventions make of it."""
    if torch.compiler.is_compiling():
        return value
    now = _active.get()
    if now is not None:
        for change in now.changes.get((id(module), kind), ()):
            if value is not None:
                value = change(value, made_from)
    return value


@contextmanager
def recording(recorder: ActivationRecorder) -> Iterator[None]:
    """Make ``recorder`` the active one, in this context only."""
    now = _active.get()
    token = _active.set(_Active(recorder, {} if now is None else now.changes))
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def changing(changes: Mapping[tuple[object, str], Change]) -> Iterator[None]:
    """Replace values at hook points, by module and kind, in this context only."""
    now = _active.get() or _Active(None, {})
    added = {
        (id(module), kind): (*now.changes.get((id(module), kind), ()), change)
        for (module, kind), change in changes.items()
    }
    token = _active.set(now._replace(changes={**now.changes, **added}))
    try:
        yield
    finally:
        _active.reset(token)
