"""One validation example of those that were answered, as a page shows it and links to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.config import CorpusTaskConfig, SequenceTaskConfig
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.errors.answers import Answers
from tfm_core.runs.run import Run

CONTEXT = 12
"""Tokens before a surprising one that stand beside it."""
_MAX_LETTERS = 400  # of a text in a link


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A text that went wrong: what was read, said and meant, as a person reads it.

    differs_at: the first token, from 0, that was said otherwise; said_token and meant_token: the
    two, empty where one text had ended.
    """

    source: str
    said: str
    truth: str
    differs_at: int | None = None
    said_token: str = ""
    meant_token: str = ""


@dataclass(frozen=True, slots=True)
class Surprise:
    """A token of a text, what stands before it, and the text up to it, to be read again."""

    before: str
    token: str
    said: str
    text: str


def picture_of(run: Run, example: int) -> npt.NDArray[np.uint8] | None:
    """Return a validation picture, uint8 (C, height, width); None where sentences are read.

    Raises ValueError, in a sentence, for pictures that cannot be had.
    """
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
    """Return how many of the examples look like one in training, in which other words are hidden.

    0 for tasks that hide no words. Raises ValueError as ``picture_of`` does.
    """
    from tfm_core.data.text_data import TextData, n_shared_sources

    data = data_of(run.experiment)
    if not (getattr(run.experiment.task.facts, "hides", False) and isinstance(data, TextData)):
        return 0
    return n_shared_sources(data, data.validation.pairs[: answers.n_examples])


def text_of(run: Run, answers: Answers, example: int) -> Shown:
    """Return a text that the model wrote by itself beside the one that was meant."""
    assert answers.written is not None
    reading, item = answers.written[example], answers.items[example]
    said, meant = reading.tokens, tuple(item["tgt"])
    longest = max(len(said), len(meant))
    differing = [at for at in range(longest) if said[at : at + 1] != meant[at : at + 1]]
    at = differing[0] if differing else None
    return Shown(
        reading.item.get("src_text", ""),
        reading.said,
        reading.truth,
        at,
        "" if at is None else "".join(said[at : at + 1]),
        "" if at is None else "".join(meant[at : at + 1]),
    )


def source_of(run: Run, answers: Answers, example: int) -> str:
    """Return the sentence of an example that gets a label, as a person reads it."""
    from tfm_core.data.text import text_task

    task = text_task(run.experiment.task_as(SequenceTaskConfig))
    return task.join_src(answers.items[example]["src"])


def surprise_of(run: Run, answers: Answers, place: int) -> Surprise:
    """Return an answer of a language model with the text before it."""
    from tfm_core.data.corpus.task import corpus_task
    from tfm_core.data.vocabulary import SPECIALS

    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    tokens = tuple(answers.items[int(answers.example[place])]["tgt"])
    at = int(answers.position[place])
    truth, said = answers.names[answers.truth[place]], answers.names[answers.said[place]]
    read = tokens[:at] if truth in SPECIALS else (*tokens[:at], truth)
    read = read[-config.max_tgt_len :]
    while len(text := task.join_tgt(read)) > _MAX_LETTERS:
        read = read[1:]
    return Surprise(task.join_tgt(tokens[max(0, at - CONTEXT) : at]), truth, said, text)
