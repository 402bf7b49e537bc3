"""What is found in texts before they become a set, and in a set of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from tfm_core.data.own.layout import ColumnLayout
from tfm_core.data.own.records import Row
from tfm_core.data.own.sets import MAX_NAME, TOKENS, OwnSet, SetDamaged, damaged
from tfm_core.data.own.task import TEXT, own_vocabulary
from tfm_core.data.own.tokens import Cutter, learned_from_text
from tfm_core.reading import json_of
from tfm_core.sentences import N_

MAX_PREVIEW = 50
MAX_SHARE_LEFT_OUT = 0.05
"""Of the lines of a file: more than that deserves a warning."""
COLUMNS = {"pairs": (N_("source"), N_("target")), "labels": (N_("sentence"), N_("label"))}
"""What the two texts of a row are, by kind."""
_NAMES = {"pairs": N_("My pairs"), "labels": N_("My labels"), "text": N_("My text")}


@dataclass(frozen=True, slots=True)
class TextChoices:
    """How texts are read."""

    encoding: str | None = None  # of files that are not UTF-8, guessed if None
    cut_at: int | None = None  # tokens, at least 2, at which longer texts end; None skips those
    merges_labels: bool = True  # whether labels that differ only in case are one


@dataclass(frozen=True, slots=True)
class Accounting:
    """Where the lines of a file ended up; the counts add up to ``total``."""

    total: int = 0
    kept: int = 0  # of the rows that a set holds
    left_out: int = 0  # of rows with a problem
    repeated: int = 0  # of duplicate rows
    blank: int = 0  # without any text
    header: int = 0  # of the names of columns, or on the format
    in_entries: bool = False  # whether entries of a JSON list are counted
    in_answers: bool = False  # whether answers in chats are counted

    @property
    def share_left_out(self) -> float:
        """The share of the lines with content that have a problem."""
        return self.left_out / max(1, self.total - self.blank - self.header)


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What is in an upload, before it becomes a set."""

    kind: str
    name: str
    unit: str  # see ``tokens.CUTS``, of a text ``variants.units.UNITS``
    split: Mapping[str, object]  # as ``sets.Prepared`` has it
    columns: tuple[str, ...] = ()  # names of the two texts of a row
    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict, repr=False)  # by split
    problems: tuple[Row, ...] = ()  # lines that are left out
    notes: tuple[str, ...] = ()  # what is worth knowing of what is kept
    refusal: str | None = None  # why none of it can be kept
    counts: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # tokens, by column
    balance: Mapping[str, int] = field(default_factory=dict)  # label -> examples
    n_across: int = 0  # validation and test examples whose source training holds too
    n_unknown: int = 0  # their tokens that training never shows, of ``n_tokens``
    n_tokens: int = 0
    text: str = ""
    test: str = ""
    cutters: tuple[Cutter, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    layout: ColumnLayout | None = None  # how the columns of the file are read, None of a text
    names: tuple[str, ...] = ()  # of all columns
    sample: tuple[tuple[str, ...], ...] = ()  # the first rows with all columns
    accounting: Accounting = field(default_factory=Accounting)
    test_accounting: Accounting = field(default_factory=Accounting)
    spellings: tuple[tuple[str, ...], ...] = ()  # labels written in several ways, the usual first
    is_merged: bool = False  # whether the spellings of a label are one
    encoding: str = "utf-8"  # of the file, "" where none is likely
    n_cut: int = 0  # examples that were cut

    @property
    def is_much_left_out(self) -> bool:
        """Whether so many lines have problems that the file is probably wrong."""
        files = (self.accounting, self.test_accounting)
        return max(file.share_left_out for file in files) > MAX_SHARE_LEFT_OUT

    @property
    def preview(self) -> tuple[tuple[str, ...], ...]:
        """The first rows as a table of ``columns``; of a text its first lines."""
        if self.kind == "text":
            lines = [line for line in self.text.split("\n", 400)[:400] if line.strip()]
            return tuple((line,) for line in lines[:MAX_PREVIEW])
        different = dict.fromkeys(row for part in self.rows.values() for row in part)
        rows = sorted(different, key=lambda row: row.line)
        return tuple((row.first, row.second) for row in rows[:MAX_PREVIEW])


def set_name(name: str, kind: str) -> str:
    """Return a name in one line: of a file without its ending, or one that says the kind."""
    printable = "".join(c if c.isprintable() else " " for c in name)
    path = PurePath(printable.replace("\\", "/"))
    stem = path.stem if path.suffix.lower() in _ENDINGS else printable
    return " ".join(stem.split())[:MAX_NAME].strip() or str(_NAMES[kind])


_ENDINGS = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".tab", ".md", ".zip"}


SPLITS = ("train", "validation", "test")
_MAX_CUT = 5_000
"""Rows of which the lengths are counted; of a larger set the first ones."""


def report_of(own: OwnSet) -> Report:
    """Return what a set holds. Raises SetDamaged."""
    unit = str(own.details.get("unit", ""))
    if own.kind == "text":
        text = own.content(TEXT).decode(errors="replace")
        kept = own_vocabulary(own.id)
        tokens = kept[1] if kept else learned_from_text(unit, text).text_vocabulary(text)
        return Report(
            "text", own.name, unit, own.split, ("line",), counts=own.counts, text=text,
            words=(tokens,),
        )  # fmt: skip
    columns = COLUMNS[own.kind]
    try:
        rows = {split: _rows(own.content(f"{split}.jsonl")) for split in SPLITS}
        sides = json_of(own.content(TOKENS))
        cutters = tuple(Cutter.from_json(side["cut"]) for side in sides)
        words = tuple(tuple(side["words"]) for side in sides)
    except SetDamaged:
        raise
    except (ValueError, KeyError, TypeError):
        raise damaged(own.name) from None
    everything = list(dict.fromkeys(row for split in SPLITS for row in rows[split]))
    some = everything[:_MAX_CUT]
    balance = Counter(row.second for row in everything if own.kind == "labels")
    return Report(
        own.kind,
        own.name,
        unit,
        own.split,
        columns,
        rows=rows,
        counts=own.counts,
        lengths={
            columns[0]: tuple(len(cutters[0].cut(row.first)) for row in some),
            columns[1]: tuple(len(cutters[1].cut(row.second)) for row in some),
        },
        balance=dict(balance.most_common()),
        n_across=int(own.details.get("n_across") or 0),
        words=words,
    )


def as_lines(report: Report) -> str:
    """Return the rows of a report as they could be pasted again, with a tab between both texts."""
    if report.kind == "text":
        return report.text
    lines = (f"{row.first}\t{row.second}" for split in SPLITS for row in report.rows[split])
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _rows(content: bytes) -> tuple[Row, ...]:
    rows: list[Row] = []
    for number, line in enumerate(content.decode().split("\n"), 1):
        if line:
            first, second = json_of(line)
            if not (isinstance(first, str) and isinstance(second, str)):
                raise ValueError
            rows.append(Row(number, (first, second)))
    return tuple(rows)
