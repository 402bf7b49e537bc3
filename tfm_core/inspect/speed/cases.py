"""What a comparison consists of: sides that give equal results, and what is counted besides time.

An experiment yields cases; in each, every side does the same work. torch-free: the page reads the
report of a measurement with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tfm_core.sentences import StudentError


@dataclass(frozen=True, slots=True)
class Equality:
    """How far a side's results are from the reference's: the largest absolute difference.

    what: which results, in words; tolerance: what rounding alone explains.
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
    """One workload of a comparison: the sides, each a call that does the work once.

    part: which work, in words; x: where on the horizontal axis of a curve, None in a plain pair.
    n_bytes: bytes counted for each side; facts: numbers and words found on the way.
    """

    part: str
    sides: Mapping[str, Callable[[], object]]
    equalities: tuple[Equality, ...] = ()
    x: float | None = None
    n_bytes: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, float | str] = field(default_factory=dict)


class NotHere(StudentError):
    """A comparison makes no sense for this model or on this device; the message says why."""
