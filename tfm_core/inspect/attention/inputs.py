"""What a model is called with: for one example, and for a batch; torch is imported late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import (
    CaptionerConfig,
    Experiment,
)
from tfm_core.data.tasks import task_of
from tfm_core.inspect.attention.trained import pixels_of
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.moving import Data

Item = Mapping[str, Any]
Picture = npt.NDArray[np.uint8]
Batch = tuple[tuple["Tensor", ...], list[Item]]


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
        raise StudentError("There is no picture; this run reads {shape}.", shape=task.picture_shape)
    if picture.shape != task.picture_shape:
        raise StudentError(
            "The picture is {found}; this run reads {shape}.",
            found=picture.shape,
            shape=task.picture_shape,
        )
    return normalised(torch.tensor(picture)[None], *pixels_of(run))


def batch_of(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return what the model is called with for some examples of the validation set, and items."""
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
