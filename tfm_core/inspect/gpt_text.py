"""A text for a language model to be tried on: a stretch that it never learned from. Torch-free."""

from __future__ import annotations

import random

from tfm_core.config import CorpusTaskConfig
from tfm_core.data.corpus.task import corpus_task
from tfm_core.runs.run import Run

_LENGTH = {"words": 60, "characters": 300}


def example_text(run: Run, n: int | None = None) -> str:
    """Return about ``n`` tokens of the last tenth of a run's text, or a sentence of the grammar."""
    config = run.experiment.task
    assert isinstance(config, CorpusTaskConfig)
    task = corpus_task(config)
    if task.is_grammar:
        tokens = task.sample(random.Random(f"{run.experiment.seed} unseen")).tgt
        return task.join_tgt(tokens if n is None else tokens[:n])
    tokens = tuple(task.tokens)
    first = len(tokens) - max(2, len(tokens) // 10)
    for place in range(first, min(first + 80, len(tokens) - 1)):  # not in the middle of a word
        if config.unit == "words" or tokens[place - 1].isspace():
            first = place
            break
    piece = tokens[first : first + (n or _LENGTH[config.unit])]
    if config.unit == "characters" and " " in piece:  # nor ending in one
        piece = piece[: len(piece) - piece[::-1].index(" ")]
    return task.join_tgt(piece).strip()
