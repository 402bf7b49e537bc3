"""Text tasks: generated pairs of source and target, each with its true alignment. No torch."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.choices.config.text_tasks import TextTaskConfig
from tfm_core.choices.variants.record import resolve
from tfm_core.data.text.task import DrawnTask, Pair, TextTask

_PUZZLES = {"copy", "reverse", "sort", "select", "sort-by-key", "brackets", "parity", "two-sum"}


def generated(config: TextTaskConfig) -> DrawnTask:
    """Return the task that makes its own examples; the same settings give the same object."""
    return drawn(config.name, config.size, *((config.operation,) if config.calculates else ()))


@lru_cache(maxsize=64)
def drawn(name: str, size: int, *operation: str) -> DrawnTask:
    """Return the task that makes its own examples of a size.

    ``two-words`` is the class ``TwoWordsTask`` of ``two_words.py``, which is imported when it is
    asked for; puzzles share a file, and each has a function in it.
    """
    plain = name.replace("-", "_")
    place = f"puzzles:{plain}_task"
    if name not in _PUZZLES:
        place = f"{plain}:{plain.title().replace('_', '')}Task"
    task: DrawnTask = resolve(f"{__name__}.{place}")(size, *operation)
    return task


__all__ = ["DrawnTask", "Pair", "TextTask", "drawn", "generated"]
