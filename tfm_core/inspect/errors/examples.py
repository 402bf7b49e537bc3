"""One validation example as a page shows it, the worst errors, and the most surprising tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tfm_core.config import CorpusTaskConfig, SequenceTaskConfig
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.runs.run import Run

CONTEXT = 12
"""Tokens shown before a surprising one."""
_MAX_LETTERS = 400  # of a text in a link


@dataclass(frozen=True, slots=True, eq=False)
class WrongText:
    """A wrong answer as a person reads it: source, prediction and truth.

    differs_at: the first wrong token, from 0; predicted_token and true_token: empty after an end.
    """

    source: str
    predicted: str
    truth: str
    differs_at: int | None = None
    predicted_token: str = ""
    true_token: str = ""


@dataclass(frozen=True, slots=True)
class Surprise:
    """A token of a text, the text before it, and the text up to it."""

    before: str
    token: str
    predicted: str
    text: str


def picture_of(run: Run, example: int) -> npt.NDArray[np.uint8] | None:
    """Return a validation picture, uint8 (C, height, width); None for texts. Raises ValueError."""
    import torch

    from tfm_core.data.captions import CaptionData
    from tfm_core.data.image_data import ImageData

    data = data_of(run.experiment)
    picture = None
    if isinstance(data, ImageData):
        picture = data.validation.images[example]
    elif isinstance(data, CaptionData):
        picture = data.validation.pictures(torch.tensor([example]))[0]
    return None if picture is None else np.asarray(picture.numpy(), np.uint8)


def n_alike(run: Run, answers: Answers) -> int:
    """Return how many examples equal a training example but for the hidden words; else 0."""
    from tfm_core.data.text_data import TextData, n_shared_sources

    data = data_of(run.experiment)
    if not (getattr(run.experiment.task.facts, "hides", False) and isinstance(data, TextData)):
        return 0
    return n_shared_sources(data, data.validation.pairs[: answers.n_examples])


def text_of(run: Run, answers: Answers, example: int) -> WrongText:
    """Return a generated text beside the true one."""
    assert answers.written is not None
    reading, item = answers.written[example], answers.items[example]
    predicted, meant = reading.tokens, tuple(item["tgt"])
    longest = max(len(predicted), len(meant))
    differing = [at for at in range(longest) if predicted[at : at + 1] != meant[at : at + 1]]
    at = differing[0] if differing else None
    return WrongText(
        reading.item.get("src_text", ""),
        reading.predicted,
        reading.truth,
        at,
        "" if at is None else "".join(predicted[at : at + 1]),
        "" if at is None else "".join(meant[at : at + 1]),
    )


def source_of(run: Run, answers: Answers, example: int) -> str:
    """Return the sentence of an example that gets a label, as a person reads it."""
    from tfm_core.data.tasks import text_task

    task = text_task(run.experiment.task_as(SequenceTaskConfig))
    return task.join_src(answers.items[example]["src"])


def surprise_of(run: Run, answers: Answers, place: int) -> Surprise:
    """Return an answer of a language model with the text before it."""
    from tfm_core.data.tasks import corpus_task
    from tfm_core.data.vocabulary import SPECIALS

    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    tokens = tuple(answers.items[int(answers.example[place])]["tgt"])
    at = int(answers.position[place])
    truth, predicted = answers.names[answers.truth[place]], answers.names[answers.predicted[place]]
    read = tokens[:at] if truth in SPECIALS else (*tokens[:at], truth)
    read = read[-config.max_tgt_len :]
    while len(text := task.join_tgt(read)) > _MAX_LETTERS:
        read = read[1:]
    return Surprise(task.join_tgt(tokens[max(0, at - CONTEXT) : at]), truth, predicted, text)


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


@dataclass(frozen=True, slots=True)
class HardToken:
    """A token with its count, its mean loss and its share of the total loss.

    instead: the most frequent wrong prediction for it, if any.
    """

    number: int
    n: int
    train_count: int
    loss: float
    share: float
    instead: int | None


def hard_tokens(answers: Answers, least: int = 1) -> list[HardToken]:
    """Return the tokens with the highest mean loss, with at least ``least`` targets."""
    size = len(answers.names)
    n = np.bincount(answers.truth, minlength=size)
    total = np.bincount(answers.truth, answers.loss, minlength=size)
    known = np.flatnonzero(n >= least)
    order = known[np.argsort(-total[known] / n[known], kind="stable")][:MAX_TOKENS]
    tokens = []
    for number in order.tolist():
        predicted = answers.predicted[(answers.truth == number) & ~answers.is_right]
        instead = int(np.bincount(predicted).argmax()) if len(predicted) else None
        tokens.append(
            HardToken(
                number,
                int(n[number]),
                int(answers.train_counts[number]),
                float(total[number] / n[number]),
                float(total[number] / total.sum()),
                instead,
            )
        )
    return tokens
