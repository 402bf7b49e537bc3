"""Text tasks: generated pairs of source and target, each with its true alignment. No torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tfm_core.config.corpus_tasks import CorpusTaskConfig
from tfm_core.config.own_tasks import OwnTextTaskConfig
from tfm_core.config.reads import SequenceTaskConfig
from tfm_core.config.task import TextTaskConfig
from tfm_core.data.text.addition import AdditionTask
from tfm_core.data.text.dates import DatesTask
from tfm_core.data.text.english_korean import EnglishKoreanTask
from tfm_core.data.text.masked_words import MaskedWordsTask
from tfm_core.data.text.numbers import NumbersTask
from tfm_core.data.text.sentiment import SentimentTask
from tfm_core.data.text.sequences import copy_task, reverse_task, sort_task
from tfm_core.data.text.span_corruption import SpanCorruptionTask
from tfm_core.data.text.task import Pair, TextTask
from tfm_core.sentences import StudentError

# The key is the name in the configuration; the value takes the size.
TEXT_GENERATORS: dict[str, Callable[[int], TextTask]] = {
    "english-korean": EnglishKoreanTask,
    "dates": DatesTask,
    "numbers": NumbersTask,
    "copy": copy_task,
    "reverse": reverse_task,
    "sort": sort_task,
    "addition": AdditionTask,
    "sentiment": SentimentTask,
    "masked-words": MaskedWordsTask,
    "span-corruption": SpanCorruptionTask,
}


def text_task(config: SequenceTaskConfig) -> TextTask:
    """Return the task of a configuration; the same name and size give the same object."""
    if isinstance(config, CorpusTaskConfig):
        from tfm_core.data.corpus.task import corpus_task  # it is made of the words of this package

        return corpus_task(config)
    if isinstance(config, OwnTextTaskConfig):
        from tfm_core.data.own.task import own_task  # it keeps this package's contract

        return own_task(config)
    if isinstance(config, TextTaskConfig):
        return _task(config.name, config.size)
    raise StudentError("{kind} has no words of a text task.", kind=type(config).__name__)


@lru_cache(maxsize=64)
def _task(name: str, size: int) -> TextTask:
    return TEXT_GENERATORS[name](size)


__all__ = ["TEXT_GENERATORS", "Pair", "TextTask", "text_task"]
