"""Text tasks: generated pairs of source and target, each with its true alignment. No torch."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.choices.config.text_tasks import TextTaskConfig
from tfm_core.choices.variants.record import resolve
from tfm_core.data.text.task import Pair, TextTask


def generated(config: TextTaskConfig) -> TextTask:
    """Return the task that makes its own examples; the same settings give the same object."""
    return drawn(config.name, config.size, *((config.operation,) if config.calculates else ()))


@lru_cache(maxsize=64)
def drawn(name: str, size: int, *operation: str) -> TextTask:
    """Return the task that makes its own examples of a size.

    ``two-words`` is the class ``TwoWordsTask`` of ``two_words.py``, which is imported when it is
    asked for; arithmetic stands in ``numbers.py``, and puzzles share a class.
    """
    from tfm_core.data.text.puzzles import PUZZLES, PuzzleTask

    if name in PUZZLES:
        return PuzzleTask(name, size)
    plain = name.replace("-", "_")
    module = "numbers" if plain in {"addition", "modular_addition"} else plain
    made_by = resolve(f"{__name__}.{module}:{plain.title().replace('_', '')}Task")
    task: TextTask = made_by(size, *operation)
    return task


__all__ = ["Pair", "TextTask", "drawn", "generated"]
