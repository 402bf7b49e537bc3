"""Paired timing of contenders that don't change: warm up, then rounds there and back (A B B A).

CPU-seconds leave out what other processes take. The app's page on speed times in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from tfm_core.inspect.speed import paired
from tfm_core.inspect.speed.paired import Clock, TimeRange, ratio

__all__ = ["Clock", "TimeRange", "measure", "milliseconds", "ratio"]


def measure(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warmup: int = 2,
    repeats: int | Mapping[str, int] = 1,
    clock: Clock = time.process_time,
) -> dict[str, list[float]]:
    """Return for each contender its seconds per call, one number a round.

    repeats: calls in a turn, one number for all or one for each.
    """
    counts = {name: repeats if isinstance(repeats, int) else repeats[name] for name in contenders}
    for contender in contenders.values():
        for _ in range(warmup):
            contender()
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for found in paired.rounds(contenders, counts, count=rounds, clock=clock):
        for name, seconds in found.items():
            taken[name].append(seconds)
    return taken


def milliseconds(seconds: Sequence[float]) -> TimeRange:
    """Return a spread of seconds in milliseconds."""
    return TimeRange.of([1000 * value for value in seconds])
