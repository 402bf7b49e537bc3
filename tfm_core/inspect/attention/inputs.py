"""What a model is called with: for one example, and for a batch; torch is imported late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import (
    CaptionerConfig,
    CaptionTaskConfig,
    Experiment,
    PictureTaskConfig,
    SequenceTaskConfig,
)
from tfm_core.data import caption_words
from tfm_core.data.tasks import text_task
from tfm_core.data.vocabulary import BOS
from tfm_core.inspect.attention.trained import pixels_of
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.load import Data

Item = Mapping[str, Any]
Picture = npt.NDArray[np.uint8]
Batch = tuple[tuple["Tensor", ...], list[Item]]


def inputs_of(run: Run, item: Item, picture: Picture | None = None) -> tuple[Tensor, ...]:
    """Return the inputs of the model for one example: (src, tgt_in), (images,) or (images, tgt_in).

    item: ``src`` and ``tgt`` tokens, as in ``Example.item``; picture: uint8 (C, height, width).
    Raises StudentError for a picture of another shape or none, and where there is no model.
    """
    inputs = run.experiment.task.by_data(
        pairs=of_text, stream=of_text, pictures=of_picture, captions=of_caption
    )
    return inputs(run, item, picture)


def batch_of(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return what the model is called with for some examples of the validation set, and items."""
    batch = experiment.task.by_data(
        pairs=text_batch, stream=text_batch, pictures=picture_batch, captions=caption_batch
    )
    return batch(experiment, data, rows)


def of_text(run: Run, item: Item, picture: Picture | None) -> tuple[Tensor, ...]:
    """Return (src, tgt_in) of one text; a picture is not looked at."""
    import torch

    words = text_task(run.experiment.task_as(SequenceTaskConfig))
    src = torch.tensor([words.src_vocabulary.encode(tuple(item["src"]))], dtype=torch.int64)
    begin = words.tgt_vocabulary.specials.bos
    return src, torch.tensor([[begin, *words.tgt_vocabulary.encode(tuple(item["tgt"]))]])


def of_picture(run: Run, item: Item, picture: Picture | None) -> tuple[Tensor, ...]:
    """Return (images,) of one picture. Raises ValueError, in a sentence, for another shape."""
    import torch

    from tfm_core.data.moving import normalised

    task = run.experiment.task_as(PictureTaskConfig)
    shape = (task.channels, task.image_size, task.image_size)
    if picture is None:
        raise StudentError("There is no picture; this run reads {shape}.", shape=shape)
    if picture.shape != shape:
        raise StudentError(
            "The picture is {found}; this run reads {shape}.", found=picture.shape, shape=shape
        )
    return (normalised(torch.tensor(picture)[None], *pixels_of(run)),)


def of_caption(run: Run, item: Item, picture: Picture | None) -> tuple[Tensor, ...]:
    """Return (images, tgt_in) of one described picture. Raises ValueError for another shape."""
    import torch

    (images,) = of_picture(run, item, picture)
    words = caption_words.vocabulary(run.experiment.task_as(CaptionTaskConfig))
    return images, torch.tensor([[BOS, *words.encode(tuple(item["tgt"]))]])


def text_batch(experiment: Experiment, data: Data, rows: slice) -> Batch:
    """Return some texts of the validation set, (src, tgt_in), and their items."""
    from tfm_core.data.load import data_as
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
    from tfm_core.data.load import data_as
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
    from tfm_core.data.load import data_as

    found = data_as(data, ImageData)
    images = found.validation.images[rows]
    return (found.normalise(images),), [{} for _ in range(len(images))]
