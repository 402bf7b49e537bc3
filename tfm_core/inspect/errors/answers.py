"""Per-example predictions on the validation set with the weights of one step.

A picture and a labelled sentence have one answer each. A written text has one per token, given the
true tokens before it (teacher forcing); beside it stands what the model generates greedily. The
test set is never touched. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.inputs import batch_of
from tfm_core.inspect.attention.trained import checkpoint_mark, data_of, no_checkpoint
from tfm_core.inspect.errors.validation_errors import (
    ValidationAnswer,
    has_right_answers,
    reader_of,
)
from tfm_core.inspect.progress.weights import model_of_step
from tfm_core.runs.record.weights import weights_path
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from tfm_core.data.moving import Data
    from tfm_core.models.build import Model

LIMIT = 2000
"""The most validation examples that are read."""
_AT_ONCE = 100
_LOGITS_AT_ONCE = 2 * 10**7

AnswerUnit = Literal["picture", "label", "token"]
OnProgress = Callable[[float], None]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


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
    try:
        return weights_path(run.folder, step).stat().st_mtime_ns
    except OSError:
        raise StudentError("Step {step:,} has no saved weights.", step=step) from None


def answers(run: Run, step: int, report: OnProgress | None = None, limit: int = LIMIT) -> Answers:
    """Return the predictions for the first ``limit`` validation examples; slow, so cache them.

    step: one of ``steps_of``. report: is called with the share done. Raises ValueError, in a
    sentence, without such weights or data.
    """
    import torch

    model, _step = model_of_step(run, step)
    experiment, data = run.experiment, data_of(run.experiment)
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
