"""Scores of many answers: the confusion matrix, calibration, BLEU and chrF.

Calibration: Guo et al. 2017, section 2. BLEU: Papineni et al. 2002. chrF: Popovic 2015. A score
without its signature can't be compared (Post 2018). sacrebleu is imported late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.compare.conclusions import wilson
from tfm_core.inspect.errors.answers import Answers, Integers

MAX = 24
"""Classes with a row of their own where there are more; the rest are counted together."""
OTHERS = -1
"""The number of all other classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Counts (classes, classes): truth down, predicted across.

    numbers: the class of each row and column, OTHERS last, if any. There a count is right if the
    class is the same.
    """

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    counts: Integers
    n_wrong: Integers

    def cell(self, row: int, column: int) -> tuple[int, int]:
        """Return the classes of a cell."""
        return self.numbers[row], self.numbers[column]


def confusion(answers: Answers, most: int = MAX) -> Confusion:
    """Count predictions by truth; of more than ``most`` classes, those with the most errors."""
    truth, predicted, n = answers.truth, answers.predicted, len(answers.names)
    used = np.flatnonzero(np.bincount(truth, minlength=n) + np.bincount(predicted, minlength=n))
    if answers.unit == "picture" and n <= most:
        used = np.arange(n)
    shown = used if len(used) <= most else np.sort(_most_confused(answers, used)[: most - 1])
    numbers = (*shown.tolist(), *([OTHERS] if len(shown) < len(used) else []))
    place = np.full(n, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    size = len(numbers)
    cells = place[truth] * size + place[predicted]
    is_wrong = truth != predicted
    return Confusion(
        numbers,
        tuple("…" if number == OTHERS else answers.names[number] for number in numbers),
        np.bincount(cells, minlength=size * size).reshape(size, size),
        np.bincount(cells[is_wrong], minlength=size * size).reshape(size, size),
    )


def _most_confused(answers: Answers, used: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return classes by their number of errors, then by their frequency."""
    n, wrong = len(answers.names), ~answers.is_right
    errors = np.bincount(answers.truth[wrong], minlength=n)
    errors += np.bincount(answers.predicted[wrong], minlength=n)
    often = np.bincount(answers.truth, minlength=n)
    return used[np.lexsort((-often[used], -errors[used]))]


def in_cell(answers: Answers, found: Confusion, cell: tuple[int, int]) -> npt.NDArray[np.intp]:
    """Return which answers a cell, (truth, predicted) by number, counts; none for one not shown."""
    if not set(cell) <= set(found.numbers):
        return np.array([], np.intp)
    chosen = np.ones(len(answers.truth), np.bool_)
    named = [number for number in found.numbers if number != OTHERS]
    for values, number in zip((answers.truth, answers.predicted), cell, strict=True):
        chosen &= ~np.isin(values, named) if number == OTHERS else values == number
    return np.flatnonzero(chosen)


N_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers with a confidence above ``low``, up to ``high``: n, and how many are right.

    confidence: their mean. interval: of the share right, 95%.
    """

    low: float
    high: float
    n: int
    n_right: int
    confidence: float
    interval: tuple[float, float]

    @property
    def accuracy(self) -> float:
        """Share of them that is right."""
        return self.n_right / self.n


@dataclass(frozen=True, slots=True)
class Calibration:
    """The bins that hold answers, and the expected calibration error, from 0 to 1."""

    bins: tuple[Bin, ...]
    error: float
    n_bins: int

    @property
    def confidence(self) -> float:
        """Mean confidence of all answers."""
        return sum(one.n * one.confidence for one in self.bins) / sum(one.n for one in self.bins)

    @property
    def accuracy(self) -> float:
        """Share of all answers that is right."""
        return sum(one.n_right for one in self.bins) / sum(one.n for one in self.bins)


def calibration(
    confidence: npt.NDArray[np.float32], is_right: npt.NDArray[np.bool_], n_bins: int = N_BINS
) -> Calibration:
    """Share M answers, at least one, out by their confidence; both (M,)."""
    place = np.clip(np.ceil(confidence.astype(np.float64) * n_bins) - 1, 0, n_bins - 1)
    bins = []
    for number in range(n_bins):
        inside = place == number
        n, n_right = int(inside.sum()), int(is_right[inside].sum())
        if n:
            mean = float(confidence[inside].mean(dtype=np.float64))
            low, high = number / n_bins, (number + 1) / n_bins
            bins.append(Bin(low, high, n, n_right, mean, wilson(n_right, n)))
    error = sum(one.n * abs(one.accuracy - one.confidence) for one in bins) / len(confidence)
    return Calibration(tuple(bins), error, n_bins)


N_GRAM = 4
"""Words of the longest n-grams that BLEU counts."""


@dataclass(frozen=True, slots=True)
class CorpusScore:
    """A score from 0 to 100, with sacrebleu's signature."""

    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class CorpusScores:
    """BLEU and chrF of the same texts.

    bleu: None if tokens are not words, or most targets have fewer than N_GRAM. n_short: those.
    """

    bleu: CorpusScore | None
    chrf: CorpusScore
    n_short: int


def corpus_scores(
    predicted: Sequence[str], truth: Sequence[str], *, are_words: bool = True
) -> CorpusScores:
    """Score texts against one target each.

    are_words: tokens are split at spaces as they are (``--tokenize none``). BLEU uses n-grams up to
    four words, so shorter texts have 0.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    n_short = sum(len(text.split()) < N_GRAM for text in truth)
    references = [list(truth)]
    bleu, chrf = BLEU(tokenize="none", force=True), CHRF()
    of_words = None
    if are_words and 2 * n_short <= len(truth):
        value = float(bleu.corpus_score(list(predicted), references).score)
        of_words = CorpusScore(value, str(bleu.get_signature()))
    value = float(chrf.corpus_score(list(predicted), references).score)
    return CorpusScores(of_words, CorpusScore(value, str(chrf.get_signature())), n_short)
