"""What is read of an upload, before it becomes a set, and what a set holds, of whatever kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from tfm_core.data.own.containers import Accounting, Item, Remark
from tfm_core.data.own.layout import ColumnLayout
from tfm_core.data.own.sets import MAX_NAME, SPLITS
from tfm_core.data.own.tokens import Cutter
from tfm_core.sentences import N_

MAX_PREVIEW = 50
COLUMNS = {
    "pairs": (N_("source"), N_("target")),
    "labels": (N_("sentence"), N_("label")),
    "text": (N_("line"),),
}
"""What the texts of a row are, by kind."""
_NAMES = {
    "pairs": N_("My pairs"),
    "labels": N_("My labels"),
    "text": N_("My text"),
    "pictures": N_("My pictures"),
}
_ENDING = re.compile(r"\.(csv|tsv|txt|json|jsonl|ndjson|tab|md|zip|npz|gz)$", re.IGNORECASE)

Folders = Literal["splits", "classes"]


@dataclass(frozen=True, slots=True)
class ReadAs:
    """How an upload is read where it can be read in several ways.

    Given to a reader, None leaves the choice to it; in ``Report.read_as``, None says that there is
    nothing to choose.
    """

    encoding: str | None = None  # of a text, or of the names in a zip; "" where none is likely
    layout: ColumnLayout | None = None  # of a table of texts
    cut_at: int | None = None  # tokens, at least 2, at which longer texts end; None skips those
    merges_labels: bool | None = None  # whether labels that differ only in case are one
    folders: Folders | None = None  # whether the outer folders are splits or classes
    is_turned: bool | None = None  # whether rows and columns are swapped, as in EMNIST


GUESSED = ReadAs()
"""Every choice is left to the reader."""


@dataclass(slots=True, eq=False)
class Report:
    """What is in an upload, before it becomes a set, and in a set; filled as it is read.

    Every row or picture is one of ``items``, each with its split, or of ``skipped``, with a reason.
    """

    kind: str
    name: str
    split: Mapping[str, object]  # as ``sets.Prepared`` has it
    items: tuple[Item, ...] = field(default=(), repr=False)
    skipped: tuple[Item, ...] = ()
    findings: tuple[Remark, ...] = ()
    refusal: str | None = None  # why none of it can be kept
    read_as: ReadAs = GUESSED
    names: tuple[str, ...] = ()  # of all columns of a table, or the outer folders of a zip
    accounting: Accounting = field(default_factory=Accounting)
    test_accounting: Accounting = field(default_factory=Accounting)
    counts: Mapping[str, int] = field(default_factory=dict)  # examples or tokens, by split
    unit: str = ""  # see ``tokens.CUTS``, of a text ``variants.units.UNITS``
    text: str = ""
    test: str = ""
    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # tokens, by column
    n_across: int = 0  # validation and test examples whose source training holds too
    cutters: tuple[Cutter, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    sample: tuple[tuple[str, ...], ...] = ()  # the first rows with all columns
    spellings: tuple[tuple[str, ...], ...] = ()  # labels written in several ways, the usual first

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the two texts of a row."""
        return COLUMNS[self.kind]

    @property
    def rows(self) -> dict[str, list[Item]]:
        """The items of each split."""
        parts: dict[str, list[Item]] = {split: [] for split in SPLITS}
        for item in self.items:
            parts[SPLITS[item.split or 0]].append(item)
        return parts

    @property
    def distinct(self) -> list[Item]:
        """The different rows; few pairs are in every split."""
        return list({(row.line, row.numbered, row.texts): row for row in self.items}.values())

    @property
    def balance(self) -> dict[str, list[int]]:
        """The examples of each label or class in each split; none of pairs and texts."""

        def key(label: str) -> tuple[list[tuple[int, int, str]], str]:  # 2 before 10
            pieces = re.findall(r"\d+|\D+", label)
            return [
                (0, int(p), p) if p.isdecimal() else (1, 0, p.casefold()) for p in pieces
            ], label

        items = self.items if self.kind in {"labels", "pictures"} else ()
        labels = sorted({row.label for row in items}, key=key)
        counts = {label: [0] * len(SPLITS) for label in labels}
        for row in items:
            counts[row.label][row.split or 0] += 1
        return counts

    @property
    def preview(self) -> tuple[tuple[str, ...], ...]:
        """The first rows as a table of ``columns``; of a text its first lines."""
        if self.kind == "text":
            lines = [line for line in self.text.split("\n", 400)[:400] if line.strip()]
            return tuple((line,) for line in lines[:MAX_PREVIEW])
        rows = sorted(self.distinct, key=lambda row: row.line)
        return tuple(row.texts for row in rows[:MAX_PREVIEW])


def set_name(name: str, kind: str) -> str:
    """Return a name in one line: of a file without its ending, or one that says the kind."""
    printable = "".join(c if c.isprintable() else " " for c in name)
    path = PurePath(printable.replace("\\", "/"))
    stem = path.stem if _ENDING.search(printable) else printable
    return " ".join(stem.split())[:MAX_NAME].strip() or str(_NAMES[kind])
