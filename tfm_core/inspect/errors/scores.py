"""Scores of many answers: the confusion matrix, calibration, BLEU and chrF.

Calibration: Guo et al. 2017, section 2. BLEU: Papineni et al. 2002. chrF: Popovic 2015. A score
without its signature can't be compared (Post 2018). sacrebleu is imported late.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.inspect.compare.conclusions import shares_right
from tfm_core.inspect.errors.answers import Answers

MAX = 24
"""Classes with a row of their own where there are more; the rest are counted together."""
OTHERS = -1
"""The number of all other classes."""


def confusion(answers: Answers, most: int = MAX) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count predictions by truth, and how many of them are wrong; truth down, predicted across.

    Rows and columns are numbers of classes; of more than ``most``, those with the most errors, and
    last OTHERS, where an answer is right if the class is the same.
    """
    truth, predicted, n = answers.truth, answers.predicted, len(answers.names)
    used = np.flatnonzero(np.bincount(truth, minlength=n) + np.bincount(predicted, minlength=n))
    if answers.unit == "picture" and n <= most:
        used = np.arange(n)
    shown = used if len(used) <= most else np.sort(_most_confused(answers, used)[: most - 1])
    numbers = [*shown.tolist(), *([OTHERS] if len(shown) < len(used) else [])]
    place = np.full(n, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    size = len(numbers)
    cells = place[truth] * size + place[predicted]

    def counted(some: npt.NDArray[np.int64]) -> pd.DataFrame:
        counts = np.bincount(some, minlength=size * size).reshape(size, size)
        return pd.DataFrame(counts, numbers, numbers)

    return counted(cells), counted(cells[truth != predicted])


def _most_confused(answers: Answers, used: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return classes by their number of errors, then by their frequency."""
    n, wrong = len(answers.names), ~answers.is_right
    errors = np.bincount(answers.truth[wrong], minlength=n)
    errors += np.bincount(answers.predicted[wrong], minlength=n)
    often = np.bincount(answers.truth, minlength=n)
    return used[np.lexsort((-often[used], -errors[used]))]


def in_cell(
    answers: Answers, numbers: Sequence[int], cell: tuple[int, int]
) -> npt.NDArray[np.intp]:
    """Return which answers a cell, (truth, predicted) by number, counts; none for one not shown.

    numbers: of the classes that are shown.
    """
    if not set(cell) <= set(numbers):
        return np.array([], np.intp)
    chosen = np.ones(len(answers.truth), np.bool_)
    named = [number for number in numbers if number != OTHERS]
    for values, number in zip((answers.truth, answers.predicted), cell, strict=True):
        chosen &= ~np.isin(values, named) if number == OTHERS else values == number
    return np.flatnonzero(chosen)


N_BINS = 10


def calibration(
    confidence: npt.NDArray[np.float32], is_right: npt.NDArray[np.bool_], n_bins: int = N_BINS
) -> tuple[pd.DataFrame, float]:
    """Share M answers, at least one, out by their confidence; both (M,).

    Return the bins that hold answers: what ``shares_right`` returns, confidence: their mean,
    middle: of the bin. And the expected calibration error, from 0 to 1.
    """
    place = np.clip(np.ceil(confidence.astype(np.float64) * n_bins) - 1, 0, n_bins - 1)
    numbers = np.unique(place).astype(int).tolist()
    counts = [is_right[place == number] for number in numbers]
    bins = shares_right(
        (n, int(one.sum()), len(one)) for n, one in zip(numbers, counts, strict=True)
    )
    bins["confidence"] = [confidence[place == n].mean(dtype=np.float64) for n in numbers]
    bins["middle"] = (np.array(numbers) + 0.5) / n_bins
    gaps = (bins["accuracy"] - bins["confidence"]).abs()
    return bins, float((bins["n"] * gaps).sum() / len(confidence))


N_GRAM = 4
"""Words of the longest n-grams that BLEU counts."""


def n_short(texts: Sequence[str]) -> int:
    """Return how many texts have fewer than N_GRAM words."""
    return sum(len(text.split()) < N_GRAM for text in texts)


def corpus_scores(
    predicted: Sequence[str], truth: Sequence[str], *, are_words: bool = True
) -> dict[str, tuple[float, str]]:
    """Score texts against one target each: a score from 0 to 100, and sacrebleu's signature.

    are_words: tokens are split at spaces as they are (``--tokenize none``). BLEU uses n-grams up to
    four words, so shorter texts have 0; it is left out if tokens are no words, or most texts short.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    metrics: dict[str, BLEU | CHRF] = {"chrF": CHRF()}
    if are_words and 2 * n_short(truth) <= len(truth):
        metrics = {"BLEU": BLEU(tokenize="none", force=True), **metrics}
    return {
        name: (
            float(metric.corpus_score(list(predicted), [list(truth)]).score),
            str(metric.get_signature()),
        )
        for name, metric in metrics.items()
    }
