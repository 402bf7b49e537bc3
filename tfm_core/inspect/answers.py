"""What a model answers on the validation set, example by example, with the weights of one step.

A picture and a labelled sentence have one answer each. A written text has one per token, given the
true tokens before it (teacher forcing); beside it stands what the model generates greedily. The
test set is never touched. ``evaluate`` computes them in the background. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.background import Asked, Background
from tfm_core.choices.config import CaptionerConfig, Experiment, TaskConfig
from tfm_core.inspect.attention.trained import (
    batch_of,
    cached_by_weights,
    data_of,
    model_of,
    model_of_step,
    weights_mark,
)
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.moving import Data
    from tfm_core.data.vocabulary import Vocabulary
    from tfm_core.decoding import Decoded
    from tfm_core.models.build import Model


LIMIT = 2000
"""The most validation examples that are read."""
FEW = 500
"""Those that are read where one waits for them."""
_AT_ONCE = 100
_LOGITS_AT_ONCE = 2 * 10**7
_MAX_WAITING = 8

EVALUATIONS = Background("mistakes", most=24)
"""Those of this process, by weights."""

AnswerUnit = Literal["picture", "label", "token"]
OnProgress = Callable[[float], None]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


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


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """M answers on the first ``n_examples`` of ``n_all`` validation examples.

    unit: what one answer is. names: of the classes or tokens, by number. truth and predicted: (M,),
    numbers of the target and of the likeliest. confidence: (M,), the probability of the likeliest.
    loss: (M,), the cross-entropy in nats. example and position: (M,), which example from 0, and
    which of its tokens. items: the examples as in a probe. written: what the model generates, one
    an example, or None. train_counts: how often each class or token is a target in training.
    """

    step: int
    n_examples: int
    n_all: int
    unit: AnswerUnit
    names: tuple[str, ...]
    truth: Integers
    predicted: Integers
    confidence: Floats
    loss: Floats
    example: Integers
    position: Integers
    items: tuple[Mapping[str, Any], ...]
    train_counts: Integers
    written: tuple[ValidationAnswer, ...] | None = None

    @property
    def is_right(self) -> npt.NDArray[np.bool_]:
        """Which answers are right, (M,)."""
        return np.asarray(self.truth == self.predicted)

    @property
    def is_language(self) -> bool:
        """Whether they are a language model's, which has no one right answer."""
        return self.unit == "token" and self.written is None

    @property
    def n_right(self) -> int:
        """Number of right answers."""
        return int(self.is_right.sum())

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return self.n_right / len(self.truth)


def answers(run: Run, step: int, report: OnProgress | None = None, limit: int = LIMIT) -> Answers:
    """Return the predictions for the first ``limit`` validation examples; slow, so cache them.

    step: one of ``steps_of``. report: is called with the share done. Raises ValueError, in a
    sentence, without such weights or data.
    """
    return answers_of_model(
        run.experiment, data_of(run.experiment), model_of_step(run, step), report, limit
    )


def answers_of_model(
    experiment: Experiment,
    data: Data,
    weights: tuple[Model, int],
    report: OnProgress | None = None,
    limit: int = LIMIT,
) -> Answers:
    """Return the predictions of a model for validation examples; weights: it, and its step."""
    import torch

    model, step = weights
    n = min(limit, len(data.validation))
    task = experiment.task
    is_read = has_right_answers(task) and _unit(experiment) == "token"
    readings = reader_of(task) if is_read else None
    parts: list[_Part] = []
    items: list[Mapping[str, Any]] = []
    written: list[ValidationAnswer] = []
    names = data.names
    for rows in _batches(data, len(names), n):
        with torch.inference_mode():
            parts.append(_predicted(experiment, model, data, rows, items))
        if readings is not None:
            written += readings(experiment, model, data, rows)
        if report is not None:
            report(rows.stop / n)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    truth, predicted, confidence, loss, example, position = columns
    counts = np.bincount(data.learned.flatten().numpy(), minlength=len(names))
    return Answers(
        step=step,
        n_examples=n,
        n_all=len(data.validation),
        unit=_unit(experiment),
        names=names,
        truth=truth.astype(np.int64),
        predicted=predicted.astype(np.int64),
        confidence=confidence.astype(np.float32),
        loss=loss.astype(np.float32),
        example=example.astype(np.int64),
        position=position.astype(np.int64),
        items=tuple(items),
        train_counts=counts.astype(np.int64),
        written=None if readings is None else tuple(written),
    )


def _unit(experiment: Experiment) -> AnswerUnit:
    if experiment.task.class_names:
        return "picture"
    return "label" if experiment.task.facts.answer == "label" else "token"


def _batches(data: Data, n_outputs: int, n: int) -> Iterator[range]:
    """Yield the rows of batches whose logits fit in memory."""
    at_once = max(1, min(_AT_ONCE, _LOGITS_AT_ONCE // (n_outputs * data.n_answers)))
    for first in range(0, n, at_once):
        yield range(first, min(n, first + at_once))


_Part = tuple[npt.NDArray[Any], ...]


def _predicted(
    experiment: Experiment,
    model: Model,
    data: Data,
    rows: range,
    items: list[Mapping[str, Any]],
) -> _Part:
    """Return truth, predicted, confidence, loss, example and position of some examples."""
    import torch

    part = slice(rows.start, rows.stop)
    inputs, found = batch_of(experiment, data, part)
    items += found
    logits = model(*inputs).float()
    targets, counts = data.truth(part, inputs[-1].size(1))
    if logits.dim() == 2:
        logits = logits[:, None]
    logits = logits[:, : targets.size(1)]
    places = counts.nonzero()  # (M, 2)
    logits, targets = logits[counts], targets[counts]
    if _unit(experiment) == "label":
        from tfm_core.data.vocabulary import SPECIALS

        logits[:, : len(SPECIALS)] = -torch.inf  # never an answer
    logs = logits.log_softmax(-1)
    best = logs.max(-1)
    loss = -logs.gather(1, targets[:, None])[:, 0]
    columns = (
        targets,
        best.indices,
        best.values.exp(),
        loss,
        places[:, 0] + rows.start,
        places[:, 1],
    )
    return tuple(column.numpy() for column in columns)


@cached_by_weights
def wrong_first(run: Run, limit: int = FEW) -> tuple[ValidationAnswer, ...]:
    """Answer the first ``limit`` validation examples with the last checkpoint. Cached.

    The wrong answers, surest first, then the right ones, least sure first. Raises StudentError
    without a checkpoint or data, and for a language model.
    """
    read = reader_of(run.experiment.task)
    model, _step = model_of(run)
    data = data_of(run.experiment)
    readings = read(run.experiment, model, data, range(min(limit, len(data.validation))))
    wrong = sorted((r for r in readings if not r.is_right), key=lambda r: -r.confidence)
    right = sorted((r for r in readings if r.is_right), key=lambda r: r.confidence)
    return (*wrong, *right)


def answer_one(run: Run, index: int) -> ValidationAnswer:
    """Answer one validation example, from 0. Raises as ``wrong_first``, and outside the set."""
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
    return task.by_data(
        pairs=text_answers, stream=text_answers, pictures=picture_answers, captions=caption_answers
    )


def text_answers(
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
    task = data.task
    pairs = data.validation.pairs[rows.start : rows.stop]
    items = [
        {"src": pair.src, "tgt": pair.tgt, "src_text": task.join_src(pair.src)} for pair in pairs
    ]
    return _written(rows, items, written, task.tgt_vocabulary, task.join_tgt)


def _written(
    rows: range,
    items: Iterable[Mapping[str, Any]],
    written: Decoded,
    words: Vocabulary,
    join: Callable[[Sequence[str]], str],
    pictures: Tensor | None = None,
) -> list[ValidationAnswer]:
    """Return texts that a model wrote about some examples beside the true ones."""
    readings = []
    for place, (index, item) in enumerate(zip(rows, items, strict=True)):
        predicted = tuple(words.decode(written.ids[place].tolist()))
        sure = written.confidence[place, : len(predicted) + 1]
        truth = item["tgt_text"] if "tgt_text" in item else join(item["tgt"])
        readings.append(
            ValidationAnswer(
                index,
                item,
                join(predicted),
                truth,
                float(sure.min()) if len(sure) else 0.0,
                predicted == tuple(item["tgt"]),
                None if pictures is None else pictures[place].numpy(),
                predicted,
            )
        )
    return readings


def caption_answers(
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
    config = data.config
    return _written(
        rows, items, written, data.vocabulary, lambda words: join(words, config), pictures
    )


def picture_answers(
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
            model(data.normalise(images[first : first + _AT_ONCE])).float().softmax(-1)
            for first in range(0, len(images), _AT_ONCE)
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


@dataclass(slots=True)
class Evaluation:
    """The work of ``answers``. share: the progress."""

    run: Run
    step: int
    share: float = 0.0

    def __call__(self) -> Answers:
        """Return the answers."""
        return answers(self.run, self.step, self._report)

    def _report(self, share: float) -> None:
        self.share = share


def evaluate(run: Run, step: int) -> Asked[Evaluation]:
    """Return the evaluation of a step's weights, cached or new.

    Raises ValueError, in a sentence, without such weights or if too many wait.
    """
    key = (str(run.folder), step, weights_mark(run, step))
    known = EVALUATIONS.asked.get(key)
    if (known is None or known.is_void) and EVALUATIONS.n_waiting >= _MAX_WAITING:
        raise StudentError("The server is busy with other runs. Try again in a few seconds.")
    return EVALUATIONS.ask(key, Evaluation(run, step))
