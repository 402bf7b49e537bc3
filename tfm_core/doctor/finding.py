"""What one check found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's. do: what would help; mended: what was done just now.

    ``problem``: something that the app is there for does not work, or not for long.
    """

    name: str
    level: Level
    words: str
    do: str | None = None
    mended: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a person reads it; what was done stands below."""
        line = f"{self.level:<8} {self.name:<11} {self.words}"
        if self.do:
            line = f"{line} {self.do}"
        return "\n".join([line, *(f"{'':<8} {'':<11} mended: {done}" for done in self.mended)])


def some(names: Iterable[str]) -> str:
    """Return the first few names, and how many more there are."""
    known = list(names)
    more = len(known) - _SHOWN
    return ", ".join(known[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
