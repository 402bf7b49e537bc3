"""Many answers judged: the worst, the confusion matrix, calibration, BLEU and chrF.

Calibration: Guo et al. 2017, section 2. BLEU: Papineni et al. 2002. chrF: Popovic 2015. A score
without its signature can't be compared (Post 2018). sacrebleu is imported late.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.compare.conclusions import shares_right
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.runs.run import Run

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


CONTEXT = 12
"""Tokens shown before a surprising one."""
_MAX_LETTERS = 400  # of a text in a link


def picture_of(run: Run, example: int) -> npt.NDArray[np.uint8] | None:
    """Return a validation picture, uint8 (C, height, width); None for texts. Raises ValueError."""
    picture = data_of(run.experiment).validation.pictures(slice(example, example + 1))
    return None if picture is None else np.asarray(picture[0].numpy(), np.uint8)


def n_alike(run: Run, answers: Answers) -> int:
    """Return how many examples equal a training example but for the hidden words; else 0."""
    from tfm_core.data.text_data import TextData, n_shared_sources

    data = data_of(run.experiment)
    if not (getattr(run.experiment.task.facts, "hides", False) and isinstance(data, TextData)):
        return 0
    return n_shared_sources(data, data.validation.pairs[: answers.n_examples])


def first_difference(answers: Answers, example: int) -> tuple[int, str, str] | None:
    """Return where a generated text first differs from the true one, from 0, and both tokens there.

    A token is empty after an end. None where the texts are the same.
    """
    assert answers.written is not None
    pairs = zip_longest(
        answers.written[example].tokens, answers.items[example]["tgt"], fillvalue=""
    )
    return next(((at, one, other) for at, (one, other) in enumerate(pairs) if one != other), None)


def source_of(run: Run, answers: Answers, example: int) -> str:
    """Return the sentence of an example that gets a label, as a person reads it."""
    from tfm_core.data.tasks import text_task

    task = text_task(run.experiment.task)
    return task.join_src(answers.items[example]["src"])


def surprise_of(run: Run, answers: Answers, place: int) -> tuple[str, str]:
    """Return the text before an answer of a language model, and the text up to it."""
    from tfm_core.data.tasks import corpus_task
    from tfm_core.data.vocabulary import SPECIALS

    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    tokens = tuple(answers.items[int(answers.example[place])]["tgt"])
    at = int(answers.position[place])
    truth = answers.names[answers.truth[place]]
    read = tokens[:at] if truth in SPECIALS else (*tokens[:at], truth)
    read = read[-config.max_tgt_len :]
    while len(text := task.join_tgt(read)) > _MAX_LETTERS:
        read = read[1:]
    return task.join_tgt(tokens[max(0, at - CONTEXT) : at]), text


WorstBy = Literal["loss", "sure"]
Places = npt.NDArray[np.intp]
MAX_TOKENS = 25


def worst_answers(answers: Answers, order: WorstBy, chosen: Places | None = None) -> Places:
    """Return the wrong answers, or those of ``chosen``, (M,), the worst first.

    loss: by their loss; sure: by the confidence in the wrong answer. All answers of a language
    model count.
    """
    found = np.arange(len(answers.truth)) if chosen is None else chosen
    wrong = found[~answers.is_right[found]]
    if len(wrong) and not (answers.is_language and order == "loss"):
        found = wrong
    elif chosen is None and not answers.is_language:
        return wrong
    scores = (answers.loss if order == "loss" else answers.confidence)[found]
    return np.asarray(found[np.argsort(-scores, kind="stable")])


def worst_texts(answers: Answers, order: WorstBy, chosen: Places | None = None) -> Places:
    """Return the wrongly generated texts, or those of ``chosen`` answers, the worst first.

    loss: by the mean loss of the target tokens; sure: by the least sure generated token.
    """
    assert answers.written is not None
    is_right, loss = of_examples(answers)
    found = np.flatnonzero(~is_right) if chosen is None else np.unique(answers.example[chosen])
    sure = np.array([one.confidence for one in answers.written])
    scores = loss if order == "loss" else sure
    return np.asarray(found[np.argsort(-scores[found], kind="stable")])


def least_sure(answers: Answers, most: int) -> Places:
    """Return the right answers that were least sure; of texts the texts."""
    if answers.written is not None:
        sure = np.array([one.confidence for one in answers.written])
        return np.asarray(np.argsort(sure, kind="stable")[:most])
    return np.asarray(np.argsort(answers.confidence, kind="stable")[:most])


def hard_tokens(answers: Answers, least: int = 1) -> pd.DataFrame:
    """Return the tokens with the highest mean loss, with at least ``least`` targets, by number.

    loss: the mean, in nats; share: of the total loss; n targets; train_count of them in training;
    instead: the most frequent wrong prediction, or -1.
    """
    size = len(answers.names)
    n = np.bincount(answers.truth, minlength=size)
    total = np.bincount(answers.truth, answers.loss, minlength=size)
    known = np.flatnonzero(n >= least)
    order = known[np.argsort(-total[known] / n[known], kind="stable")][:MAX_TOKENS]
    instead = []
    for number in order.tolist():
        predicted = answers.predicted[(answers.truth == number) & ~answers.is_right]
        instead.append(int(np.bincount(predicted).argmax()) if len(predicted) else -1)
    return pd.DataFrame(
        {
            "loss": total[order] / n[order],
            "share": total[order] / total.sum(),
            "n": n[order],
            "train_count": answers.train_counts[order],
            "instead": instead,
        },
        index=order,
    )
