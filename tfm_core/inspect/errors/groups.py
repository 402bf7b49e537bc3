"""Right answers by group: by class, length, pattern, position, kind and frequency of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.config import Experiment
from tfm_core.inspect.errors.answers import Answers, Integers
from tfm_core.inspect.errors.patterns import has_patterns, patterns_of
from tfm_core.inspect.errors.token_classes import token_class
from tfm_core.inspect.practice.intervals import Z_95, wilson
from tfm_core.sentences import N_

MAX_BANDS = 10
_RANKS = (10, 30, 100, 300, 1000, 3000)
"""The last of each band of ranks, the most frequent token of the training data first."""


@dataclass(frozen=True, slots=True)
class Group:
    """Answers, or whole texts, of one kind: how many, how many right, and their loss in nats.

    loss_error: what the mean loss may be off by, with 95 % confidence.
    """

    label: str
    n: int
    n_right: int
    loss: float
    loss_error: float

    @property
    def accuracy(self) -> float:
        """Share of them that is right."""
        return self.n_right / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share right of all such answers lies, with 95 % confidence."""
        return wilson(self.n_right, self.n)


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group. is_of_texts: whole texts as the model writes them alone, not answers."""

    label: str
    groups: Callable[[Answers, Experiment], list[Group]]
    is_of_texts: bool = False


def groupings(answers: Answers, experiment: Experiment) -> dict[str, Grouping]:
    """Return the ways to group that fit, the most telling first."""
    if answers.unit == "picture":
        return {"class": GROUPINGS["class"]}
    if answers.is_language:
        names = ["kind", "frequency", "position"]
    elif answers.unit == "label":
        names = ["class", "length", "pattern"]
    else:
        names = ["length", "pattern", "kind", "position"]
    return {
        name: GROUPINGS[name] for name in names if name != "pattern" or has_patterns(experiment)
    }


def _by_class(answers: Answers, experiment: Experiment) -> list[Group]:
    found = [int(number) for number in np.unique(answers.truth)]
    return [_group(answers.names[number], answers, answers.truth == number) for number in found]


def _by_length(answers: Answers, experiment: Experiment) -> list[Group]:
    side = "src" if answers.written is None else "tgt"
    lengths = np.array([len(item[side]) for item in answers.items], np.int64)
    return [
        _of_examples(_said(low, high), answers, (lengths >= low) & (lengths <= high))
        for low, high in bands(lengths)
    ]


def _by_pattern(answers: Answers, experiment: Experiment) -> list[Group]:
    shown = [patterns_of(experiment, item) for item in answers.items]
    every = dict.fromkeys(pattern for patterns in shown for pattern in patterns)
    groups = [
        _of_examples(pattern, answers, np.array([pattern in patterns for patterns in shown]))
        for pattern in every
    ]
    return sorted(groups, key=lambda group: group.accuracy)


def _by_position(answers: Answers, experiment: Experiment) -> list[Group]:
    places = answers.position + 1
    return [
        _group(_said(low, high), answers, (places >= low) & (places <= high))
        for low, high in bands(places)
    ]


def _by_kind(answers: Answers, experiment: Experiment) -> list[Group]:
    kinds = np.array([str(token_class(name, experiment)) for name in answers.names])
    labels = {str(one): one for one in (token_class(name, experiment) for name in answers.names)}
    meant = kinds[answers.truth]
    groups = [_group(labels[kind], answers, meant == kind) for kind in np.unique(meant).tolist()]
    return sorted(groups, key=lambda group: -group.loss)


def _by_frequency(answers: Answers, experiment: Experiment) -> list[Group]:
    order = np.argsort(-answers.often, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(1, len(order) + 1)
    rank[answers.often == 0] = 0
    meant, first, groups = rank[answers.truth], 1, []
    for last in (*_RANKS, len(rank)):
        inside = (meant >= first) & (meant <= last)
        if inside.any():
            groups.append(_group(_said(first, min(last, len(rank))), answers, inside))
        first = last + 1
    if (meant == 0).any():
        groups.append(_group(N_("never in training"), answers, meant == 0))
    return groups


GROUPINGS: dict[str, Grouping] = {
    "class": Grouping(N_("Class"), _by_class),
    "length": Grouping(N_("Length"), _by_length, is_of_texts=True),
    "pattern": Grouping(N_("Pattern"), _by_pattern, is_of_texts=True),
    "kind": Grouping(N_("Kind of token"), _by_kind),
    "frequency": Grouping(N_("Frequency"), _by_frequency),
    "position": Grouping(N_("Position"), _by_position),
}


def bands(values: Integers, most: int = MAX_BANDS) -> list[tuple[int, int]]:
    """Return ranges that hold all values: each value its own, or as even ones as there can be."""
    known = np.unique(values)
    if len(known) <= most:
        return [(int(value), int(value)) for value in known]
    ends = np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[1:], method="higher"))
    found, low = [], int(known[0])
    for end in ends.tolist():
        found.append((low, int(end)))
        low = int(end) + 1
    return found


def _said(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _group(label: str, answers: Answers, inside: npt.NDArray[np.bool_]) -> Group:
    return _made(label, answers.is_right[inside], answers.loss[inside])


def _of_examples(label: str, answers: Answers, inside: npt.NDArray[np.bool_]) -> Group:
    """Return a group of whole examples, (examples,)."""
    is_right, loss = of_examples(answers)
    return _made(label, is_right[inside], loss[inside])


def of_examples(answers: Answers) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Return of each example whether it is right as a whole, and the mean loss of its answers.

    A text that is written is right where the model alone writes all of it; else all answers must
    be right.
    """
    n = answers.n_examples
    counts = np.maximum(np.bincount(answers.example, minlength=n), 1)
    loss = np.bincount(answers.example, answers.loss, minlength=n) / counts
    if answers.written is not None:
        return np.array([one.is_right for one in answers.written], np.bool_), loss
    wrong = np.bincount(answers.example, ~answers.is_right, minlength=n)
    return wrong == 0, loss


def _made(label: str, is_right: npt.NDArray[np.bool_], loss: npt.NDArray[np.floating]) -> Group:
    n = len(is_right)
    spread = float(loss.std(ddof=1)) if n > 1 else 0.0
    error = Z_95 * spread / n**0.5
    return Group(label, n, int(is_right.sum()), float(loss.mean(dtype=np.float64)), error)
