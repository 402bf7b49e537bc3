"""Paired, interleaved timing: every side runs in every round, there and back (A B B A).

A machine that slows down slows all sides of a round alike, so ratios within a round hold.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfm_core.inspect.tables import Column, Columns
from tfm_core.sentences import N_

Clock = Callable[[], float]


SPREADS = Columns(
    median=Column(form=".4g"),
    low=Column(N_("lowest round"), ".4g"),
    high=Column(N_("highest round"), ".4g"),
    size=Column(N_("saved for backward (MiB)"), ".3f"),
    bytes=Column(N_("bytes"), ","),
)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A median with the lowest and the highest of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> TimeRange:
        """Summarise at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def show(self, unit: str = "", digits: int = 2) -> str:
        """Return the median and, in brackets, the range."""
        median, low, high = (f"{value:.{digits}f}" for value in (self.median, self.low, self.high))
        return N_("{median}{unit} ({low} to {high})", median=median, unit=unit, low=low, high=high)


def rounds(
    sides: Mapping[str, Callable[[], object]],
    calls: Mapping[str, int],
    *,
    count: int,
    clock: Clock = time.process_time,
) -> Iterator[dict[str, float]]:
    """Yield the seconds per call of every side, for each of ``count`` rounds.

    A round runs all sides in order and then in reverse, ``calls`` calls of each at a time.
    """
    for _ in range(count):
        gc.collect()
        sums = dict.fromkeys(sides, 0.0)
        for name in [*sides, *reversed(list(sides))]:
            sums[name] += seconds_of(sides[name], calls[name], clock)
        yield {name: seconds / (2 * calls[name]) for name, seconds in sums.items()}


def ratio(above: Sequence[float], below: Sequence[float]) -> TimeRange:
    """Return how many times as long ``above`` takes as ``below``, compared within each round."""
    return TimeRange.of([a / b for a, b in zip(above, below, strict=True)])


def seconds_of(call: Callable[[], object], count: int, clock: Clock) -> float:
    """Return the seconds that ``count`` calls take together."""
    gc.disable()  # a collection would be charged to whoever happens to run
    try:
        begin = clock()
        for _ in range(count):
            call()
        return clock() - begin
    finally:
        gc.enable()
