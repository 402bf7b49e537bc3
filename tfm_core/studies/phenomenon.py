"""A known finding about Transformers: what shows it, what does not, and what its data allows.

And when a curve gets where it is going: the step of a transition, in one run and over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import CorpusTaskConfig, Experiment
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text_data import validation_sequences
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.probe.types import Bools
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph
from tfm_core.studies.study import Study

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.models.text import DecoderOnly

Levels = Mapping[str, float]
"""Label -> value of the first metric: what is known before anything is trained."""
Example = tuple[tuple[str, bool], ...]
"""Pieces of a text, and whether each is marked."""


@dataclass(frozen=True, kw_only=True)
class KnownFinding:
    """A known finding about Transformers, with a question and its source.

    right, wrong: answers to the question, and why each wrong one is wrong. paper, address: the
    source.
    """

    name: str
    title: str
    right: str
    wrong: Mapping[str, str]
    paper: str
    address: str

    @property
    def because(self) -> str:
        """What causes it."""
        return Paragraph(f"discover/{self.name}-because")

    @property
    def differs(self) -> str:
        """What differs from the paper."""
        return Paragraph(f"discover/{self.name}-differs")

    @property
    def question(self) -> Question:
        """The question before the result."""
        text = Paragraph(f"discover/{self.name}-question")
        return choice_question(text, self.right, self.wrong, self.because)


@dataclass(frozen=True, kw_only=True)
class Phenomenon(KnownFinding, Study):
    """A finding, as runs of which the first shows it, and the others, its controls, do not.

    levels: what is known of the data. example: of the data, in a few pieces.
    """

    levels: Callable[[Experiment], Levels]
    example: Callable[[Experiment], Example]

    def known(self, seeds: Iterable[int] = ()) -> dict[str, float]:
        """Return the levels as means over the data of some seeds; of the base without any."""
        of_seeds = [
            _levels(self.levels, self.base.replace(seed=seed))
            for seed in sorted({*seeds} or {self.base.seed})
        ]
        return {label: mean(one[label] for one in of_seeds) for label in of_seeds[0]}


@cache
def _levels(levels: Callable[[Experiment], Levels], experiment: Experiment) -> Levels:
    return levels(experiment)


def sequences(experiment: Experiment, n: int | None = None) -> list[tuple[str, ...]]:
    """Return unseen sequences of a corpus, all of them or the first n."""
    task = experiment.task_as(CorpusTaskConfig)
    if n is None:
        return validation_sequences(task, experiment.seed)
    return validation_sequences(task, experiment.seed, n=n)


def ids_of(run: Run, drawn: Sequence[Sequence[str]]) -> Tensor:
    """Return sequences of a corpus as ids (N, 1 + context), from <bos> on."""
    import torch

    id_of = corpus_task(run.experiment.task_as(CorpusTaskConfig)).tgt_vocabulary.id_of
    return torch.tensor([[id_of("<bos>"), *map(id_of, tokens)] for tokens in drawn])


def decoder_of(run: Run) -> DecoderOnly:
    """Return the model with its last weights. Raises ValueError."""
    from tfm_core.models.text import DecoderOnly

    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    return model


Values = npt.NDArray[np.floating[Any]]
KNOWN = 0.95
"""The share of sums that are right where they are known."""


def over_runs(steps: Iterable[int | None]) -> str:
    """Return the step that runs reached, or mean and standard deviation; how many, where not all.

    steps: None of a run that did not reach it.
    """
    every = tuple(steps)
    known = [step for step in every if step is not None]
    if not known:
        return "–"
    words = spread(known)
    return words if len(known) == len(every) else f"{words} ({len(known)} / {len(every)})"


def spread(values: Sequence[float] | pd.Series[float], form: str = ",.0f") -> str:
    """Return the mean of values and, of several, their standard deviation."""
    middle = format(mean(values), form)
    return f"{middle} ± {format(stdev(values), form)}" if len(values) > 1 else middle


def stays(is_there: Bools) -> Bools:
    """Return from where on something holds to the end, along axis 0."""
    return np.logical_and.accumulate(is_there[::-1])[::-1]


def first(steps: Values, is_there: Bools) -> int | None:
    """Return the first of some steps (S,) at which something holds, None where it never does."""
    return int(steps[is_there.argmax()]) if is_there.any() else None


def since(steps: Values, is_there: Bools) -> int | None:
    """Return the first step from which on something holds to the end, None where it does not.

    The last measurement alone does not count: it says nothing of what stays.
    """
    holds = stays(is_there)
    return first(steps, holds) if holds[-2:].all() else None


def landings(steps: Values, losses: Values, floors: Sequence[float]) -> tuple[int | None, ...]:
    """Return when a loss lands on each floor, from the highest down; the first has none above it.

    The rule: from then on, to the end, the loss is nearer to this floor than to the one above it.
    """
    return tuple(since(steps, losses < (above + floor) / 2) for above, floor in pairwise(floors))
