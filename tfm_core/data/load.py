"""The data of a task, whatever its kind."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Protocol, Self, TypeVar

import torch

from tfm_core.config import CaptionTaskConfig, CorpusTaskConfig, ImageTaskConfig, OwnTextTaskConfig
from tfm_core.config.own_pictures import OwnPicturesTaskConfig
from tfm_core.config.task import TaskConfig, TextTaskConfig
from tfm_core.config.tuned_tasks import TunedLabelsConfig
from tfm_core.data.captions import load_captions
from tfm_core.data.corpus.load import load_corpus
from tfm_core.data.download import Progress
from tfm_core.data.image_data import load_images
from tfm_core.data.opened.tuned import load_tuned_labels, measured
from tfm_core.data.own.pictures_task import load_own_pictures
from tfm_core.data.own.task import load_own
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text_data import load_text
from tfm_core.sentences import StudentError


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
    if task.without_data:
        raise StudentError(task.without_data)
    with _uncollected():
        match task:
            case TextTaskConfig():
                return load_text(task, seed=seed)
            case OwnTextTaskConfig():
                return load_own(task)
            case TunedLabelsConfig():
                return load_tuned_labels(task)
            case CorpusTaskConfig():
                return load_corpus(corpus_task(measured(task)), seed=seed)
            case CaptionTaskConfig():
                return load_captions(task, seed=seed, progress=progress)
            case OwnPicturesTaskConfig():
                return load_own_pictures(task, seed=seed)
            case ImageTaskConfig():
                return load_images(task, seed=seed, progress=progress)
    raise TypeError(f"Nothing loads the data of {type(task).__name__}.")


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
