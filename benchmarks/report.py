"""Tables in Markdown, and targets that say whether they were met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Target:
    """A number to reach: ``at_least`` or, where that is false, at most."""

    value: float
    unit: str = ""
    at_least: bool = True

    def __str__(self) -> str:
        """Return it as a person reads it."""
        return f"{'≥' if self.at_least else '≤'} {self.value:g}{self.unit}"

    def is_met(self, measured: float) -> bool:
        """Return whether a number reaches it."""
        return measured >= self.value if self.at_least else measured <= self.value

    def verdict(self, measured: float) -> str:
        """Say in a word whether a number reaches it."""
        return "met" if self.is_met(measured) else "missed"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured for a goal. seconds: CPU-seconds of the training that it took, if any.

    seeds: those that were trained, as people read them: ``3 to 7``.
    """

    value: float
    seconds: float | None = None
    seeds: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; ``notes`` stand below it, one sentence each.

    reached: what it holds for ``benchmarks.goals``, by the names of the goals.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    reached: Mapping[str, Figure] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it in Markdown."""
        lines = [f"### {self.title}", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", " ".join(self.notes)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A measurement that could not be made, and why."""

    title: str
    reason: str

    def __str__(self) -> str:
        """Return it in Markdown."""
        return f"### {self.title}\n\nSkipped: {self.reason}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
