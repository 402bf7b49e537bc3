"""The data of a task, whatever its kind."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Protocol, Self, TypeVar

import torch

from tfm_core.config.task import TaskConfig
from tfm_core.data.download import Progress
from tfm_core.sentences import StudentError
from tfm_core.variants.tasks import TASK_KINDS


class Data(Protocol):
    """Examples in three splits, as tensors on one device."""

    @property
    def train(self) -> Sized:
        """What is learned from."""
        ...

    @property
    def validation(self) -> Sized:
        """Other examples, measured during training."""
        ...

    @property
    def test(self) -> Sized:
        """Other examples again, measured once at the end."""
        ...

    def to(self, device: torch.device | str) -> Self:
        """Return the data with all tensors on a device."""
        ...


def load(task: TaskConfig, *, seed: int, progress: Progress | None = None) -> Data:
    """Return the data of a task on the CPU; the same seed makes the same splits.

    progress: called with (done, total, words) during a download. Raises ValueError for unavailable
    data.
    """
    with _uncollected():
        return TASK_KINDS[task.kind].load()(task, seed=seed, progress=progress)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause garbage collection: scanning a hundred thousand pairs takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


D = TypeVar("D")


def data_as(data: Data, kind: type[D]) -> D:
    """Return data that must be of a kind. Raises ValueError otherwise."""
    if isinstance(data, kind):
        return data
    raise StudentError(
        "This needs {needed}, not {found}.", found=type(data).__name__, needed=kind.__name__
    )
