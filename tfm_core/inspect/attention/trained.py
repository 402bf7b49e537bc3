"""The model of a run as its last checkpoint left it, and examples as that model reads them.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import Experiment, TaskConfig
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph, StudentError
from tfm_core.variants.tasks import TASK_KINDS

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.load import Data
    from tfm_core.models.build import Model

_CHECKPOINT = "checkpoints/last/checkpoint.safetensors"
_loading = threading.Lock()


def no_checkpoint(run: Run) -> str:
    """Say, in a sentence, why a run without a checkpoint has none."""
    if run.status.is_active:
        return Paragraph("attention/no-checkpoint-yet")
    return Paragraph("attention/no-checkpoint")


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


def data_of(experiment: Experiment) -> Data:
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
    experiment = run.experiment
    return TASK_KINDS[experiment.task.kind].inputs()(experiment, item, picture)


@byte_cache.kept
def _load(folder: str, mark: int) -> tuple[Model, int]:
    import torch

    from tfm_core.training.checkpoints import load_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    return load_model(Run(Path(folder)).experiment, Path(folder) / "checkpoints" / "last")


@byte_cache.kept
def _data(task: TaskConfig, seed: int) -> Data:
    from tfm_core.data.load import load

    return load(task, seed=seed)
