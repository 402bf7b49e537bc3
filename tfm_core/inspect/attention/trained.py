"""The model of a run as its last checkpoint left it, and examples as that model reads them.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    ImageTaskConfig,
    SequenceTaskConfig,
    TaskConfig,
    from_json,
)
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.captions import CaptionData
    from tfm_core.data.image_data import ImageData
    from tfm_core.data.text_data import TextData
    from tfm_core.models.build import Model

_CHECKPOINT = "checkpoints/last/checkpoint.safetensors"
_loading = threading.Lock()


def no_checkpoint(run: Run) -> str:
    """Say, in a sentence, why a run without a checkpoint has none."""
    if run.status.is_active:
        return N_(
            "This run has no checkpoint yet; one is written while it trains and when it ends."
        )
    return N_("This run has no checkpoint: none was saved, or its file is gone. Train it again.")


def checkpoint_mark(run: Run) -> int:
    """Return a number that changes with the last checkpoint: a key for caches.

    Raises ValueError, in a sentence, where there is none yet.
    """
    try:
        return (run.folder / _CHECKPOINT).stat().st_mtime_ns
    except OSError:
        raise StudentError(no_checkpoint(run)) from None


def model_of(run: Run) -> tuple[Model, int]:
    """Return the model in eval mode and the step of its weights; built once for each checkpoint.

    Raises ValueError, in a sentence, where there is no checkpoint or it is damaged.
    """
    mark = checkpoint_mark(run)
    with _loading:
        return _load(str(run.folder), mark)


def data_of(experiment: Experiment) -> TextData | ImageData | CaptionData:
    """Return the data that a run of this experiment learns from, on the CPU; made once.

    Raises ValueError, in a sentence, for pictures that cannot be had.
    """
    with _loading:
        return _data(experiment.task, experiment.seed)


def inputs_of(
    run: Run, item: Mapping[str, Any], picture: npt.NDArray[np.uint8] | None = None
) -> tuple[Tensor, ...]:
    """Return what the model is called with for one example: (src, tgt_in), (images,), or
    (images, tgt_in) where pictures are described.

    item: ``src`` and ``tgt`` tokens, as in ``Example.item``; picture: uint8 (C, height, width).
    Raises ValueError, in a sentence, for a picture of another shape or none.
    """
    import torch

    from tfm_core.data.caption_words import vocabulary
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.image_data import ImageData
    from tfm_core.data.text import text_task
    from tfm_core.data.vocabulary import BOS

    task = run.experiment.task
    if isinstance(task, ImageTaskConfig | CaptionTaskConfig):
        shape = (task.facts.channels, task.facts.image_size, task.facts.image_size)
        if picture is None or picture.shape != shape:
            what = "There is no picture" if picture is None else f"The picture is {picture.shape}"
            raise StudentError("{what}, but this run reads {shape}.", what=what, shape=shape)
        data = data_of(run.experiment)
        assert isinstance(data, ImageData | CaptionData)
        images = data.normalise(torch.tensor(picture)[None])
        if isinstance(task, ImageTaskConfig):
            return (images,)
        return images, torch.tensor([[BOS, *vocabulary(task).encode(tuple(item["tgt"]))]])
    assert isinstance(task, SequenceTaskConfig)
    words = text_task(task)
    src = torch.tensor([words.src_vocabulary.encode(tuple(item["src"]))], dtype=torch.int64)
    return src, torch.tensor([[BOS, *words.tgt_vocabulary.encode(tuple(item["tgt"]))]])


@lru_cache(maxsize=4)
def _load(folder: str, mark: int) -> tuple[Model, int]:
    import torch

    from tfm_core.training.checkpoints import load_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    experiment = from_json((Path(folder) / "experiment.json").read_bytes())
    return load_model(experiment, Path(folder) / "checkpoints" / "last")


@lru_cache(maxsize=2)
def _data(task: TaskConfig, seed: int) -> TextData | ImageData | CaptionData:
    from tfm_core.data.captions import load_captions
    from tfm_core.data.corpus.load import load_corpus
    from tfm_core.data.image_data import load_images
    from tfm_core.data.text_data import load_text

    if isinstance(task, ImageTaskConfig):
        return load_images(task, seed=seed)
    if isinstance(task, CaptionTaskConfig):
        return load_captions(task, seed=seed)
    if isinstance(task, CorpusTaskConfig):
        return load_corpus(task, seed=seed)
    return load_text(task, seed=seed)
