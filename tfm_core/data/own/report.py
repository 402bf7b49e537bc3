"""What was found in texts of one's own before any is kept, and how a set of them is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from tfm_core.data.own.layout import Layout
from tfm_core.data.own.records import Problem
from tfm_core.data.own.rows import Accounting, Row
from tfm_core.data.own.sets import MAX_NAME
from tfm_core.data.own.tokens import Cutter
from tfm_core.sentences import N_

MAX_PREVIEW = 50
MAX_SHARE_LEFT_OUT = 0.05
"""Of the lines of a file: more than that deserves a warning."""
_NAMES = {"pairs": N_("My pairs"), "labels": N_("My labels"), "text": N_("My text")}


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What was found in what was pasted or chosen, before anything is kept.

    problems: lines that are left out; refusal: why none of it can be kept, in a sentence, or None.
    notes: what is worth knowing of what is kept. columns: names of the two texts of a row. rows:
    by split; counts, preview, lengths (tokens of each row, by column), balance (label -> examples)
    are of them. n_across: validation and test examples whose source training holds too; n_unknown:
    their tokens that training never shows, of n_tokens. unit: see ``tokens.CUTS``, of a text
    ``variants.units.UNITS``. split: as ``sets.Prepared`` has it.

    layout: how the columns of the file are read, None of a text; names: of all columns, or ();
    sample: the first rows with all columns. accounting: what became of each
    line; test_accounting: the same of a test file. spellings: of each label that is written in
    several ways, all of them, the merged one first; is_merged: whether they are one label.
    """

    kind: str
    name: str
    unit: str
    split: Mapping[str, object]
    columns: tuple[str, ...] = ()
    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    refusal: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    balance: Mapping[str, int] = field(default_factory=dict)
    n_across: int = 0
    n_unknown: int = 0
    n_tokens: int = 0
    text: str = ""
    test: str = ""
    cutters: tuple[Cutter, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    layout: Layout | None = None
    names: tuple[str, ...] = ()
    sample: tuple[tuple[str, ...], ...] = ()
    accounting: Accounting = field(default_factory=Accounting)
    test_accounting: Accounting = field(default_factory=Accounting)
    spellings: tuple[tuple[str, ...], ...] = ()
    is_merged: bool = False

    @property
    def can_keep(self) -> bool:
        """Whether ``prepare`` makes a set of it."""
        return self.refusal is None

    @property
    def is_much_left_out(self) -> bool:
        """Whether so many lines have a problem that the file is probably not as it should be."""
        found = (self.accounting, self.test_accounting)
        return max(one.share_left_out for one in found) > MAX_SHARE_LEFT_OUT

    @property
    def preview(self) -> tuple[tuple[str, ...], ...]:
        """The first rows as a table of ``columns``; of a text its first lines."""
        if self.kind == "text":
            lines = [line for line in self.text.split("\n", 400)[:400] if line.strip()]
            return tuple((line,) for line in lines[:MAX_PREVIEW])
        rows = sorted((row for part in self.rows.values() for row in part), key=lambda r: r.line)
        return tuple((row.first, row.second) for row in rows[:MAX_PREVIEW])


def set_name(name: str, kind: str) -> str:
    """Return a name in one line: of a file without its ending, or one that says the kind."""
    printable = "".join(c if c.isprintable() else " " for c in name)
    path = PurePath(printable.replace("\\", "/"))
    stem = path.stem if path.suffix.lower() in _ENDINGS else printable
    return " ".join(stem.split())[:MAX_NAME].strip() or str(_NAMES[kind])


_ENDINGS = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".tab", ".md"}
