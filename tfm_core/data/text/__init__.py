"""Text tasks: generated pairs of source and target, each with its true alignment. No torch."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.choices.config.text_tasks import TextTaskConfig
from tfm_core.choices.variants.record import resolve
from tfm_core.data.text.task import TextTask

_CLASSES = {
    "addition": "numbers:AdditionTask",
    "dates": "dates:DatesTask",
    "english-korean": "english_korean:EnglishKoreanTask",
    "masked-words": "hidden_words:MaskedWordsTask",
    "modular-addition": "numbers:ModularAdditionTask",
    "numbers": "numbers:NumbersTask",
    "sentiment": "sentiment:SentimentTask",
    "span-corruption": "hidden_words:SpanCorruptionTask",
}
"""By the name of a task; all others are puzzles, which share a class."""


def generated(config: TextTaskConfig) -> TextTask:
    """Return the task that makes its own examples; the same settings give the same object."""
    return drawn(config.name, config.size, *((config.operation,) if config.calculates else ()))


@lru_cache(maxsize=64)
def drawn(name: str, size: int, *operation: str) -> TextTask:
    """Return the task that makes its own examples of a size, whose module is imported now."""
    if name not in _CLASSES:
        from tfm_core.data.text.puzzles import PuzzleTask

        return PuzzleTask(name, size)
    task: TextTask = resolve(f"{__name__}.{_CLASSES[name]}")(size, *operation)
    return task
