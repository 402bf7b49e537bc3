"""One validation example as a page shows it, the worst errors, and the most surprising tokens."""

from __future__ import annotations

from itertools import zip_longest
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.runs.run import Run

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
