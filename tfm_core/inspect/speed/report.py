"""What a comparison consists of, and the report of its measurement; torch-free."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tfm_core.inspect.speed.paired import TimeRange, ratio
from tfm_core.runs.store import RECORDED


@dataclass(frozen=True, slots=True)
class Equality:
    """The largest absolute difference of a side's results from the reference's.

    what: which results; tolerance: the rounding error allowed.
    """

    what: str
    side: str
    difference: float
    tolerance: float

    @property
    def is_equal(self) -> bool:
        """Whether the difference is within the tolerance; nan is not."""
        return self.difference <= self.tolerance


@dataclass(frozen=True, slots=True)
class BenchmarkCase:
    """One workload of a comparison; each side is a call that does it once.

    part: which work; x: its place on the axis of a curve, or None. n_bytes: by side; facts: other
    numbers and words.
    """

    part: str
    sides: Mapping[str, Callable[[], object]]
    equalities: tuple[Equality, ...] = ()
    x: float | None = None
    n_bytes: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(slots=True)
class CaseReport:
    """One case: its checks, then the seconds per call of each side, one number a round."""

    part: str
    sides: tuple[str, ...]
    x: float | None = None
    equalities: tuple[Equality, ...] = ()
    n_bytes: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, float | str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The side that others are compared with."""
        return self.sides[0]

    @property
    def is_equal(self) -> bool:
        """Whether every result is within its tolerance."""
        return all(one.is_equal for one in self.equalities)

    def time(self, side: str) -> TimeRange:
        """Return the seconds per call of a side that was timed."""
        return TimeRange.of(self.seconds[side])

    def gain(self, side: str) -> TimeRange:
        """Return how many times as long the reference takes as this side.

        median: the quotient of both times, as shown. low, high: of the quotients within a round.
        """
        paired = ratio(self.seconds[self.reference], self.seconds[side])
        quotient = self.time(self.reference).median / self.time(side).median
        return TimeRange(quotient, paired.low, paired.high)


@dataclass(slots=True)
class SpeedReport:
    """A whole measurement; ``done`` and ``total`` count its parts, ``problem`` is an error."""

    name: str
    device: str
    clock: str
    cases: list[CaseReport] = field(default_factory=list)
    done: int = 0
    total: int = 0
    doing: str = ""
    peak_bytes: int = 0
    is_complete: bool = False
    problem: str | None = None

    @property
    def timed(self) -> list[CaseReport]:
        """The cases of which every side has been timed."""
        return [case for case in self.cases if case.seconds.keys() == set(case.sides)]

    def take(self, line: str) -> None:
        """Take in a line of JSON; any other line is output of something else."""
        try:
            message = json.loads(line)
            kind = message["kind"]
        except (ValueError, TypeError, KeyError):
            return
        if kind == "case":
            sides = tuple(message["sides"])
            same = tuple(Equality(**one) for one in message["equalities"])
            n_bytes, facts = message["n_bytes"], message["facts"]
            case = CaseReport(message["part"], sides, message["x"], same, n_bytes, facts)
            self.cases.append(case)
        elif kind == "round":
            for side, seconds in message["seconds"].items():
                self.cases[-1].seconds.setdefault(side, []).append(seconds)
        elif kind == "progress":
            self.done, self.total, self.doing = message["done"], message["total"], message["words"]
        elif kind == "end":
            self.is_complete, self.peak_bytes = True, message["peak_bytes"]
        elif kind == "failed":
            self.problem = message["sentence"]


PRESET = "translate"
"""The model that was measured."""
DEVICE = "cpu"
MEASURED = ("attention", "checkpointing")
"""The recorded comparisons: they count CPU-seconds, which a busy machine hardly changes."""


def recorded(name: str) -> tuple[SpeedReport, str, str] | None:
    """Return what was recorded of a comparison, the PyTorch and the day; None where nothing was."""
    path = RECORDED.parent / f"speed-{name}.jsonl"
    if not path.is_file():
        return None
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    message = json.loads(first)
    report = SpeedReport(name, DEVICE, message["clock"])
    for line in lines:
        report.take(line)
    return report, message["torch"], message["day"]
