"""The examples of the validation set that a model answers wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import CaptionerConfig, Experiment, TaskConfig
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph, StudentError

if TYPE_CHECKING:
    from tfm_core.data.moving import Data
    from tfm_core.models.build import Model


LIMIT = 500  # examples that are read
SHOWN = 40
_BATCH = 100


@dataclass(frozen=True, slots=True, eq=False)
class ValidationAnswer:
    """One validation example and the model's answer.

    item: as in the probe. predicted, truth: as a person reads them. confidence: the probability of
    the answer, for a text of its least sure token. picture: uint8 (C, height, width) or None.
    tokens: of the written text, without <eos>. One that is longer than the longest target is cut
    one token after it, so it is never right.
    """

    index: int
    item: Mapping[str, Any]
    predicted: str
    truth: str
    confidence: float
    is_right: bool
    picture: npt.NDArray[np.uint8] | None = None
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationAnswers:
    """The wrong answers, surest first, then the right ones, least sure first.

    n_wrong of n_read answers are wrong, with the weights of ``step``.
    """

    step: int
    n_read: int
    n_wrong: int
    examples: tuple[ValidationAnswer, ...]


def wrong_examples(run: Run, limit: int = LIMIT, shown: int = SHOWN) -> ValidationAnswers:
    """Answer the first ``limit`` validation examples with the last checkpoint.

    Raises StudentError without a checkpoint or data, and for a language model.
    """
    read = reader_of(run.experiment.task)
    model, step = model_of(run)
    data = data_of(run.experiment)
    n = min(limit, len(data.validation))
    readings = read(run.experiment, model, data, range(n))
    wrong = sorted((r for r in readings if not r.is_right), key=lambda r: -r.confidence)
    right = sorted((r for r in readings if r.is_right), key=lambda r: r.confidence)
    return ValidationAnswers(step, n, len(wrong), tuple((*wrong, *right)[:shown]))


def read_one(run: Run, index: int) -> ValidationAnswer:
    """Answer one validation example, from 0. Raises as ``wrong_examples``, and outside the set."""
    read = reader_of(run.experiment.task)
    model, _step = model_of(run)
    data = data_of(run.experiment)
    if not 0 <= index < len(data.validation):
        raise StudentError(
            "There is no validation example {n:,}; the last is {most:,}.",
            n=index + 1,
            most=len(data.validation),
        )
    (reading,) = read(run.experiment, model, data, range(index, index + 1))
    return reading


_Reader = Callable[[Experiment, "Model", "Data", range], list[ValidationAnswer]]


def has_right_answers(task: TaskConfig) -> bool:
    """Return whether an answer to an unseen example is simply right or wrong."""
    return task.data_kind != "stream" and task.is_trained_here


def reader_of(task: TaskConfig) -> _Reader:
    """Return what reads unseen examples with a model. Raises StudentError without right answers."""
    if not has_right_answers(task):
        raise StudentError(Paragraph("errors/language-model"))
    return task.by_data(pairs=of_texts, stream=of_texts, pictures=of_pictures, captions=of_captions)


def of_texts(
    experiment: Experiment, model: Model, data: Data, rows: range
) -> list[ValidationAnswer]:
    """Return some unseen texts as the model answers them."""
    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData
    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer

    assert not isinstance(model, VisionTransformer)
    config, data = experiment.task, data_as(data, TextData)
    src = data.validation.src[rows.start : rows.stop]
    written = greedy(model, src, max_len=config.n_answers)
    task, readings = data.task, []
    for place, index in enumerate(rows):
        pair = data.validation.pairs[index]
        predicted = tuple(task.tgt_vocabulary.decode(written.ids[place].tolist()))
        sure = written.confidence[place, : len(predicted) + 1]
        item = {"src": pair.src, "tgt": pair.tgt, "src_text": task.join_src(pair.src)}
        readings.append(
            ValidationAnswer(
                index,
                item,
                task.join_tgt(predicted),
                task.join_tgt(pair.tgt),
                float(sure.min()) if len(sure) else 0.0,
                predicted == tuple(pair.tgt),
                tokens=predicted,
            )
        )
    return readings


def of_captions(
    experiment: Experiment, model: Model, data: Data, rows: range
) -> list[ValidationAnswer]:
    """Return some unseen pictures as the model describes them."""
    import torch

    from tfm_core.data.caption_words import join
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as
    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import Captioner
    from tfm_core.probe.items import caption_items

    assert isinstance(model, Captioner)
    data = data_as(data, CaptionData)
    pictures = data.validation.pictures(torch.tensor(rows))
    written = greedy(model, data.normalise(pictures), max_len=data.validation.tgt.size(1) - 1)
    patch_size = experiment.model_as(CaptionerConfig).patch_size
    items = caption_items(data.config, data.validation, rows, patch_size)
    readings = []
    for place, (index, item) in enumerate(zip(rows, items, strict=True)):
        predicted = tuple(data.vocabulary.decode(written.ids[place].tolist()))
        sure = written.confidence[place, : len(predicted) + 1]
        readings.append(
            ValidationAnswer(
                index,
                item,
                join(predicted, data.config),
                item["tgt_text"],
                float(sure.min()),
                predicted == tuple(item["tgt"]),
                pictures[place].numpy(),
                predicted,
            )
        )
    return readings


def of_pictures(
    experiment: Experiment, model: Model, data: Data, rows: range
) -> list[ValidationAnswer]:
    """Return some unseen pictures as the model classifies them."""
    import torch

    from tfm_core.data.image_data import ImageData
    from tfm_core.data.moving import data_as
    from tfm_core.models.pictures import VisionTransformer

    assert isinstance(model, VisionTransformer)
    data = data_as(data, ImageData)
    names = data.facts.class_names
    images = data.validation.images[rows.start : rows.stop]
    with torch.inference_mode():
        parts = [
            model(data.normalise(images[first : first + _BATCH])).float().softmax(-1)
            for first in range(0, len(images), _BATCH)
        ]
    best = torch.cat(parts).max(-1)
    labels = data.validation.labels[rows.start : rows.stop].tolist()
    return [
        ValidationAnswer(
            index,
            {"label": label},
            names[predicted],
            names[label],
            float(best.values[place]),
            predicted == label,
            images[place].numpy(),
        )
        for place, (index, label, predicted) in enumerate(
            zip(rows, labels, best.indices.tolist(), strict=True)
        )
    ]
