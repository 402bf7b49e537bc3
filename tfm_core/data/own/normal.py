"""Unicode on the way in: texts in the form NFC, without hidden characters, and what was changed.

A keyboard types NFC (UAX #15); files from macOS and PDFs often hold NFD, whose letters look the
same and are other tokens. Hidden characters only change how a text is drawn.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tfm_core.data.own.records import Problem
from tfm_core.data.own.rows import Row
from tfm_core.sentences import N_
from tfm_core.variants.units import HIDDEN, normalised

_MAX_LINES = 10
"""Numbers of lines that one note lists."""


class Changes:
    """What normalising changed, line by line."""

    def __init__(self) -> None:
        """Begin with nothing changed."""
        self._composed: set[int] = set()
        self._n_hidden: Counter[str] = Counter()
        self._lines: dict[str, dict[int, None]] = defaultdict(dict)

    def text(self, text: str, line: int) -> str:
        """Return a text normalised; line: where it stands."""
        if text.isascii():
            return text
        for sign in HIDDEN.findall(text):
            self._n_hidden[sign] += 1
            self._lines[sign][line] = None
        if not unicodedata.is_normalized("NFC", text):
            self._composed.add(line)
        return normalised(text)

    def notes(self) -> Iterator[str]:
        """Yield what was changed, in sentences."""
        if self._composed:
            yield N_(
                "{n:,} lines were normalised to Unicode NFC.",
                n=len(self._composed),
            )
        for sign, n in sorted(self._n_hidden.items()):
            lines = list(self._lines[sign])
            listed = ", ".join(map(str, lines[:_MAX_LINES]))
            yield N_(
                "Removed {n:,} invisible characters U+{code} ({name}) on lines {lines}.",
                code=f"{ord(sign):04X}",
                name=unicodedata.name(sign, "unnamed").lower(),
                n=n,
                lines=listed + (", …" if len(lines) > _MAX_LINES else ""),
            )


def normalised_rows(rows: Iterable[Row]) -> tuple[list[Row], list[Problem], list[str]]:
    """Return rows normalised, those that nothing is left of, and notes on what was changed."""
    changes = Changes()
    found: list[Row] = []
    problems: list[Problem] = []
    for row in rows:
        first, second = (
            " ".join(changes.text(text, row.line).split()) for text in (row.first, row.second)
        )
        if first and second:
            found.append(replace(row, first=first, second=second))
        else:
            problems.append(row.problem(N_("{place} has an empty text.", place=row.place)))
    return found, problems, list(changes.notes())


def normalised_text(text: str) -> tuple[str, list[str]]:
    """Return a running text normalised, and notes on what was changed."""
    if text.isascii():
        return text, []
    changes = Changes()
    lines = [changes.text(line, number) for number, line in enumerate(text.split("\n"), 1)]
    return "\n".join(lines), list(changes.notes())
