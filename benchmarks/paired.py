"""Paired, interleaved timing: every contender runs in every round, there and back (A B B A).

A machine that slows down for a while slows all contenders of a round alike, so the ratio within a
round holds where absolute times don't. CPU-seconds leave out what other processes take.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the lowest and the highest of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def show(self, unit: str = "", digits: int = 2) -> str:
        """Return the median and, in brackets, the range."""
        median, low, high = (f"{value:.{digits}f}" for value in (self.median, self.low, self.high))
        return f"{median}{unit} ({low} to {high})"


def measure(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warmup: int = 2,
    repeats: int | Mapping[str, int] = 1,
    clock: Clock = time.process_time,
) -> dict[str, list[float]]:
    """Return for each contender its seconds per call, one number a round.

    A round runs all contenders in order and then in reverse, each time ``repeats`` calls of each
    (a fast contender needs more of them than the clock's resolution).
    """
    counts = {name: repeats if isinstance(repeats, int) else repeats[name] for name in contenders}
    for contender in contenders.values():
        for _ in range(warmup):
            contender()
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        sums = dict.fromkeys(contenders, 0.0)
        for name in [*contenders, *reversed(contenders)]:
            sums[name] += _time(contenders[name], counts[name], clock)
        for name, seconds in sums.items():
            taken[name].append(seconds / (2 * counts[name]))
    return taken


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Return how many times as long ``above`` takes as ``below``, compared within each round."""
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def milliseconds(seconds: Sequence[float]) -> Spread:
    """Return a spread of seconds in milliseconds."""
    return Spread.of([1000 * value for value in seconds])


def _time(contender: Callable[[], object], count: int, clock: Clock) -> float:
    gc.collect()
    gc.disable()  # a collection would be charged to whoever happens to run
    try:
        begin = clock()
        for _ in range(count):
            contender()
        return clock() - begin
    finally:
        gc.enable()
