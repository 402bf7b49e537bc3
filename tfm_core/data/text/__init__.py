"""Text tasks: generated pairs of source and target, each with its true alignment. No torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tfm_core.config.task import TextTaskConfig
from tfm_core.data.text.addition import AdditionTask
from tfm_core.data.text.dates import DatesTask
from tfm_core.data.text.english_korean import EnglishKoreanTask
from tfm_core.data.text.masked_words import MaskedWordsTask
from tfm_core.data.text.modular import ModularTask
from tfm_core.data.text.numbers import NumbersTask
from tfm_core.data.text.puzzles import (
    brackets_task,
    parity_task,
    select_task,
    sort_by_key_task,
    two_sum_task,
)
from tfm_core.data.text.sentiment import SentimentTask
from tfm_core.data.text.sequences import copy_task, reverse_task, sort_task
from tfm_core.data.text.span_corruption import SpanCorruptionTask
from tfm_core.data.text.task import Pair, TextTask

# The key is the name in the configuration; the value takes the size, and the operation, if any.
TEXT_GENERATORS: dict[str, Callable[..., TextTask]] = {
    "english-korean": EnglishKoreanTask,
    "dates": DatesTask,
    "numbers": NumbersTask,
    "copy": copy_task,
    "reverse": reverse_task,
    "sort": sort_task,
    "addition": AdditionTask,
    "modular-addition": ModularTask,
    "select": select_task,
    "sort-by-key": sort_by_key_task,
    "brackets": brackets_task,
    "parity": parity_task,
    "two-sum": two_sum_task,
    "sentiment": SentimentTask,
    "masked-words": MaskedWordsTask,
    "span-corruption": SpanCorruptionTask,
}


def generated(config: TextTaskConfig) -> TextTask:
    """Return the task that makes its own examples; the same settings give the same object."""
    return _task(config.name, config.size, *((config.operation,) if config.calculates else ()))


@lru_cache(maxsize=64)
def _task(name: str, *settings: int | str) -> TextTask:
    return TEXT_GENERATORS[name](*settings)


__all__ = ["TEXT_GENERATORS", "Pair", "TextTask", "generated"]
