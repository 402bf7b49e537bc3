"""The trained model of a run, at its checkpoint or a kept step, and its inputs.

What is found in weights or snapshots is cached by them. torch is imported late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.choices.config import (
    CaptionerConfig,
    CorpusTaskConfig,
    Experiment,
    PretrainedPicturesConfig,
    TaskConfig,
)
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.data.tasks import data_shape, task_of
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.tables import Column, Columns
from tfm_core.runs.run import Checkpoint, Run
from tfm_core.runs.snapshots import snapshot_path, weights_path
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.data.moving import Data
    from tfm_core.models.build import Model


P = ParamSpec("P")
T = TypeVar("T")
OfRun = Callable[Concatenate[Run, P], T]
Item = Mapping[str, Any]
Picture = npt.NDArray[np.uint8]
Batch = tuple[tuple["Tensor", ...], list[Item]]
_loading = threading.Lock()


def no_checkpoint(run: Run) -> str:
    """Return why a run has no checkpoint."""
    if not run.experiment.task.has_model:
        return run.experiment.task.without_data
    if run.status.is_active:
        return Paragraph("attention/no-checkpoint-yet")
    return Paragraph("attention/no-checkpoint")


def checkpoint_mark(run: Run, which: Checkpoint = "last") -> int:
    """Return a cache key that changes with a checkpoint. Raises StudentError without one."""
    try:
        file = run.folder / "checkpoints" / which / "checkpoint.safetensors"
        return file.stat().st_mtime_ns
    except OSError:
        raise StudentError(no_checkpoint(run)) from None


def cached_by_weights(function: OfRun[P, T]) -> OfRun[P, T]:
    """Cache what a function finds in the last weights of a run.

    It then raises StudentError without a checkpoint.
    """
    return _cached(function, lambda run, *_args: checkpoint_mark(run))


def cached_by_folder(function: OfRun[P, T]) -> OfRun[P, T]:
    """Cache what a function finds in what never changes of a run, such as a snapshot."""
    return _cached(function, lambda *_args: None)


def cached_by_snapshot(function: OfRun[P, T]) -> OfRun[P, T]:
    """Cache what a function finds in a snapshot; its step is the first argument after the run.

    It then raises ValueError, in a sentence, for a snapshot that cannot be read.
    """
    return _cached(function, _snapshot_mark)


def _snapshot_mark(run: Run, step: int, *_args: object) -> int:
    run.snapshot(step)  # says in a sentence what is wrong with it
    return snapshot_path(run.folder, step).stat().st_mtime_ns


def _cached(function: OfRun[P, T], mark: Callable[..., Hashable]) -> OfRun[P, T]:
    @wraps(function)
    def cached(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = (function.__module__, function.__qualname__)
        arguments = map(_hashable, args), ((word, _hashable(one)) for word, one in kwargs.items())
        key = (*name, str(run.folder), mark(run, *args), *map(tuple, arguments))
        return byte_cache.SHARED.get(key, lambda: function(run, *args, **kwargs))

    return cached


def _hashable(value: object) -> Hashable:
    """Return a picture or an example as a part of a key."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    return str(value) if isinstance(value, Mapping) else value


def model_of(run: Run, which: Checkpoint = "last") -> tuple[Model, int]:
    """Return the model in eval mode and its step, cached. Raises ValueError, in a sentence."""
    mark = checkpoint_mark(run, which)
    with _loading:
        load = _load_large if run.experiment.training is None else _load
        return load(str(run.folder), which, mark)


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
def _load_large(folder: str, which: Checkpoint, mark: int) -> tuple[Model, int]:
    """Load a model whose weights are those of the file, so that they take no room of the cache."""
    return _loaded(folder, which)


@byte_cache.cached
def _load(folder: str, which: Checkpoint, mark: int) -> tuple[Model, int]:
    return _loaded(folder, which)


def _loaded(folder: str, which: Checkpoint) -> tuple[Model, int]:
    import torch

    from tfm_core.training.checkpoints import load_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    return load_model(Run(Path(folder)).experiment, Path(folder) / "checkpoints" / which)


@byte_cache.cached
def _data(task: TaskConfig, seed: int) -> Data:
    from tfm_core.data.tasks import load

    return load(task, seed=seed)


def model_of_step(run: Run, step: int | None = None) -> tuple[Model, int]:
    """Return the model with the weights of a step, and that step; None is the last checkpoint.

    Raises ValueError, in a sentence.
    """
    if step is None or step == run.checkpoint_step:
        return model_of(run)
    return model_at(run, step), step


def steps_of(run: Run) -> tuple[int, ...]:
    """Return the steps with weights, the checkpoint's last. Raises StudentError without."""
    last = run.checkpoint_step
    kept = [step for step in run.weight_steps() if last is None or step < last]
    steps = (*kept, *(() if last is None else (last,)))
    if not steps:
        raise StudentError(no_checkpoint(run))
    return steps


def weights_mark(run: Run, step: int) -> int:
    """Return a cache key that changes with the weights of a step. Raises StudentError without."""
    if step == run.checkpoint_step:
        return checkpoint_mark(run)
    return _weights_changed(run, step)


def _weights_changed(run: Run, step: int) -> int:
    try:
        return weights_path(run.folder, step).stat().st_mtime_ns
    except OSError:
        raise StudentError("Step {step:,} has no saved weights.", step=step) from None


def model_at(run: Run, step: int) -> Model:
    """Return the model with the kept weights of a step, cached. Raises StudentError."""
    return _model_at(str(run.folder), step, _weights_changed(run, step))


def models_by_step(run: Run) -> list[tuple[int, Model]]:
    """Return the models of the kept steps, ascending, cached; without damaged weights."""
    found = []
    for step in run.weight_steps():
        try:
            found.append((step, model_at(run, step)))
        except ValueError:  # deleted meanwhile, or damaged
            continue
    return found


@byte_cache.cached
def _model_at(folder: str, step: int, _changed: int) -> Model:
    import torch

    from tfm_core.training.setup import new_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    run = Run(Path(folder))
    weights = {name: torch.from_numpy(value) for name, value in run.weights(step).items()}
    model = new_model(run.experiment).eval()
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise StudentError(
            "The weights of step {step:,} do not fit the model.", step=step
        ) from None
    return model.requires_grad_(False)


def models_of(run: Run) -> list[tuple[int, Model]]:
    """Return the models of a run by step, ascending. Raises ValueError where there is none."""
    kept = models_by_step(run)
    if run.has_checkpoint:
        model, step = model_of(run)
        if not kept or step > kept[-1][0]:
            kept.append((step, model))
    if not kept:
        raise StudentError(no_checkpoint(run))
    return kept


def inputs_of(run: Run, item: Item, picture: Picture | None = None) -> tuple[Tensor, ...]:
    """Return the inputs of the model for one example: (src, tgt_in), (images,) or (images, tgt_in).

    item: ``src`` and ``tgt`` tokens, as in ``Example.item``; picture: uint8 (C, height, width).
    Raises StudentError for a picture of another shape or none, and where there is no model.
    """
    import torch

    task = task_of(run.experiment.task)
    if (words := task.words) is not None:
        src = [words.src_vocabulary.encode(tuple(item["src"]))]
        given = torch.tensor(src, dtype=torch.int64)
    else:
        given = _scaled(run, picture)
    if (answers := task.answers) is None:
        return (given,)
    return given, torch.tensor([[answers.specials.bos, *answers.encode(tuple(item["tgt"]))]])


def _scaled(run: Run, picture: Picture | None) -> Tensor:
    """Return a picture as a batch of one. Raises ValueError, in a sentence, for another shape."""
    import torch

    from tfm_core.data.moving import normalised

    task = run.experiment.task
    if task.picture_shape is None:
        raise StudentError(task.without_data)
    if picture is None:
        raise StudentError(
            "This run reads pictures of shape {shape}, but there is none.", shape=task.picture_shape
        )
    if picture.shape != task.picture_shape:
        raise StudentError(
            "The picture has shape {found}, but this run reads {shape}.",
            found=picture.shape,
            shape=task.picture_shape,
        )
    return normalised(torch.tensor(picture)[None], *pixels_of(run))


def batch_of(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return the inputs of the model for some validation examples, and their items."""
    batch = experiment.task.by_data(
        pairs=text_batch, stream=text_batch, pictures=picture_batch, captions=caption_batch
    )
    return batch(experiment, data, rows)


def text_batch(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return some texts of the validation set, (src, tgt_in), and their items."""
    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData

    part = data_as(data, TextData).validation
    items: list[Item] = [
        {"src": pair.src, "tgt": pair.tgt, "alignment": pair.alignment} for pair in part.pairs[rows]
    ]
    # <eos> is written, not read: longest target and <bos>
    length = 1 + max(len(item["tgt"]) for item in items)
    src = part.src[rows, : max(len(item["src"]) for item in items)]
    return (src, part.tgt[rows, :length]), items


def caption_batch(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return some described pictures of the validation set, (images, tgt_in), and their items."""
    import torch

    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as
    from tfm_core.probe.items import caption_items

    found = data_as(data, CaptionData)
    size = experiment.model_as(CaptionerConfig).patch_size
    places = range(rows.start, rows.stop)
    items: list[Item] = list(caption_items(found.config, found.validation, places, size))
    length = 1 + max(len(item["tgt"]) for item in items)
    images = found.normalise(found.validation.pictures(torch.tensor(places)))
    return (images, found.validation.tgt[rows, :length]), items


def picture_batch(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return some pictures of the validation set, (images,), and an empty item for each."""
    from tfm_core.data.image_data import ImageData
    from tfm_core.data.moving import data_as

    found = data_as(data, ImageData)
    images = found.validation.images[rows]
    return (found.normalise(images),), [{} for _ in range(len(images))]


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
