"""The worst errors first, and of a language model the tokens that surprise it most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.groups import of_examples

Order = Literal["loss", "sure"]
Places = npt.NDArray[np.intp]
MAX_TOKENS = 25


def worst_answers(answers: Answers, order: Order, chosen: Places | None = None) -> Places:
    """Return the wrong answers, (M,) or those of ``chosen``, the worst first.

    loss: by the loss of what was meant; sure: by the confidence in the wrong answer. Of a language
    model, which has no one right answer, and of ``chosen`` answers that are right, all count.
    """
    found = np.arange(len(answers.truth)) if chosen is None else chosen
    wrong = found[~answers.is_right[found]]
    if len(wrong) and not (answers.is_language and order == "loss"):
        found = wrong
    elif chosen is None and not answers.is_language:
        return wrong
    scores = (answers.loss if order == "loss" else answers.confidence)[found]
    return np.asarray(found[np.argsort(-scores, kind="stable")])


def worst_texts(answers: Answers, order: Order, chosen: Places | None = None) -> Places:
    """Return the texts that the model writes wrongly, or those of ``chosen`` answers, worst first.

    loss: by the mean loss of the tokens that were meant; sure: by the probability of the least sure
    token that was written.
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


@dataclass(frozen=True, slots=True)
class HardToken:
    """A token by what it costs: how often it is meant, its mean loss, its share of all loss.

    instead: what is said most often where it is meant and something else is said; None for nothing.
    """

    number: int
    n: int
    often: int
    loss: float
    share: float
    instead: int | None


def hard_tokens(answers: Answers, most: int = MAX_TOKENS, least: int = 1) -> list[HardToken]:
    """Return the tokens with the highest mean loss, of those meant at least ``least`` times."""
    size = len(answers.names)
    n = np.bincount(answers.truth, minlength=size)
    total = np.bincount(answers.truth, answers.loss, minlength=size)
    known = np.flatnonzero(n >= least)
    order = known[np.argsort(-total[known] / n[known], kind="stable")][:most]
    tokens = []
    for number in order.tolist():
        said = answers.said[(answers.truth == number) & ~answers.is_right]
        instead = int(np.bincount(said).argmax()) if len(said) else None
        tokens.append(
            HardToken(
                number,
                int(n[number]),
                int(answers.often[number]),
                float(total[number] / n[number]),
                float(total[number] / total.sum()),
                instead,
            )
        )
    return tokens
