"""The trained model of a run: checkpoint, inputs and weights; torch is imported late."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from tfm_core import byte_cache
from tfm_core.choices.config import (
    CorpusTaskConfig,
    Experiment,
    PretrainedPicturesConfig,
    TaskConfig,
)
from tfm_core.choices.variants.units import UNITS
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.tables import Column, Columns
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.data.moving import Data
    from tfm_core.models.build import Model


P = ParamSpec("P")
T = TypeVar("T")
OfRun = Callable[Concatenate[Run, P], T]
_CHECKPOINT = "checkpoints/last/checkpoint.safetensors"
_loading = threading.Lock()


def no_checkpoint(run: Run) -> str:
    """Say, in a sentence, why a run without a checkpoint has none."""
    if not run.experiment.task.has_model:
        return run.experiment.task.without_data
    if run.status.is_active:
        return Paragraph("attention/no-checkpoint-yet")
    return Paragraph("attention/no-checkpoint")


def checkpoint_mark(run: Run) -> int:
    """Return a cache key that changes with the last checkpoint. Raises StudentError without one."""
    try:
        return (run.folder / _CHECKPOINT).stat().st_mtime_ns
    except OSError:
        raise StudentError(no_checkpoint(run)) from None


def cached_by_weights(function: OfRun[P, T]) -> OfRun[P, T]:
    """Cache what a function finds in the last weights of a run.

    It then raises StudentError without a checkpoint.
    """
    return _cached(function, checkpoint_mark)


def cached_by_folder(function: OfRun[P, T]) -> OfRun[P, T]:
    """Cache what a function finds in what never changes of a run, such as a snapshot."""
    return _cached(function, lambda _run: None)


def _cached(function: OfRun[P, T], mark: Callable[[Run], Hashable]) -> OfRun[P, T]:
    @wraps(function)
    def look(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = (function.__module__, function.__qualname__)
        key = (*name, str(run.folder), mark(run), args, tuple(sorted(kwargs.items())))
        return byte_cache.SHARED.get(key, lambda: function(run, *args, **kwargs))

    return look


def model_of(run: Run) -> tuple[Model, int]:
    """Return the model in eval mode and its step, cached. Raises ValueError, in a sentence."""
    mark = checkpoint_mark(run)
    with _loading:
        load = _load_large if run.experiment.training is None else _load
        return load(str(run.folder), mark)


def data_of(experiment: Experiment) -> Data:
    """Return the data of an experiment, on the CPU, cached. Raises ValueError, in a sentence."""
    with _loading:
        return _data(experiment.task, experiment.seed)


def pixels_of(run: Run) -> tuple[Tensor, Tensor]:
    """Return mean and deviation (C,) by which a model's pictures are scaled, of pixels from 0 to 1.

    A run keeps them with its examples; an old one needs its data. Raises ValueError, in a sentence,
    where they are not here.
    """
    import torch

    try:
        probe = run.probe()
    except StudentError:  # it has no examples yet, or damaged ones
        return pixels_of_data(run.experiment)
    if probe.mean is not None and probe.std is not None:
        return torch.tensor(probe.mean), torch.tensor(probe.std)
    return pixels_of_data(run.experiment)


def pixels_of_data(experiment: Experiment) -> tuple[Tensor, Tensor]:
    """Return the same of an experiment, from its data. Raises ValueError where they are missing."""
    import torch

    task = experiment.task
    if isinstance(task, PretrainedPicturesConfig):
        return torch.tensor(task.mean), torch.tensor(task.std)
    data: Any = data_of(experiment)
    return data.mean, data.std


@lru_cache(maxsize=2)
def _load_large(folder: str, mark: int) -> tuple[Model, int]:
    """Load a model whose weights are those of the file, so that they take no room of the cache."""
    return _loaded(folder)


@byte_cache.cached
def _load(folder: str, mark: int) -> tuple[Model, int]:
    return _loaded(folder)


def _loaded(folder: str) -> tuple[Model, int]:
    import torch

    from tfm_core.training.checkpoints import load_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    return load_model(Run(Path(folder)).experiment, Path(folder) / "checkpoints" / "last")


@byte_cache.cached
def _data(task: TaskConfig, seed: int) -> Data:
    from tfm_core.data.tasks import load

    return load(task, seed=seed)


def check_context(config: CorpusTaskConfig, n_tokens: int) -> None:
    """Raise StudentError where a language model does not see so many tokens at once."""
    if n_tokens > config.max_tgt_len:
        raise StudentError(
            Paragraph(
                "text/too-long",
                n_tokens=n_tokens,
                unit=UNITS[config.unit].plural,
                max_tgt_len=config.max_tgt_len,
            )
        )


AT_ONCE = 20_000_000
"""Attention weights in one forward pass: 80 MB a tensor."""
IN_ALL = 2_000_000_000
"""Attention weights for one question: some seconds."""


def at_once(experiment: Experiment, most: int) -> int:
    """Return how many examples pass together, ``most`` at most and one at least."""
    return max(1, min(most, AT_ONCE // max(1, attention_numbers(experiment))))


def in_all(experiment: Experiment, most: int, least: int = 1) -> int:
    """Return how many examples are looked at, between ``least`` and ``most``."""
    return max(least, min(most, IN_ALL // max(1, attention_numbers(experiment))))


WEIGHTS = Columns(
    weight=Column(form=".4f"),
    value=Column(N_("share of weights"), ".2%", {"tickformat": ".1%", "rangemode": "tozero"}),
)


def weight_histograms(run: Run) -> dict[str, tuple[pd.DataFrame, str]]:
    """Return the histogram of every parameter, by its exported name. Raises CheckpointDamaged.

    weight, and the share of them around it before and after; then what became of the spread.
    """
    from tfm_core.training.checkpoints import load_model
    from tfm_core.training.setup import new_model

    trained, _step = load_model(run.experiment, run.folder / "checkpoints" / "last")
    before = dict(new_model(run.experiment).named_parameters())
    names = own_names(run.experiment.model, data_shape(run.experiment))
    histograms: dict[str, tuple[pd.DataFrame, str]] = {}
    for path, value in trained.named_parameters():
        name = own_name(path, names) or path
        old, new = before[path].detach().numpy(), value.detach().numpy()
        top = max(float(np.abs(old).max()), float(np.abs(new).max()), 1e-6)
        edges = np.linspace(-top, top, 62)
        first, last = (np.histogram(values, edges)[0] / values.size for values in (old, new))
        words = N_(
            "Standard deviation: {old:.4f} before, {new:.4f} now.",
            old=float(old.std()),
            new=float(new.std()),
        )
        columns = {"weight": (edges[1:] + edges[:-1]) / 2, "before": first, "after": last}
        histograms[name] = WEIGHTS.table(columns), words
    return histograms
