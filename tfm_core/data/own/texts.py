"""Custom sentences: checked, reported on, split and made a set.

A split by seed keeps all lines of one source together, so that no unseen example was seen; sources
are the same where a model reads the same tokens. Merges and vocabularies are learned from the
training part alone. Nothing is written here.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tfm_core.config.own_tasks import MAX_WORDS
from tfm_core.data.own.containers import BadData, read_each
from tfm_core.data.own.layout import ColumnLayout, guess
from tfm_core.data.own.records import ENTRY, NOT_TWO_TEXTS, TEST_ENTRY, Records, Row
from tfm_core.data.own.report import (
    COLUMNS,
    MAX_PREVIEW,
    SPLITS,
    Accounting,
    Report,
    TextChoices,
    set_name,
)
from tfm_core.data.own.running import running_text
from tfm_core.data.own.sets import MAX_NAME, TOKENS, Prepared
from tfm_core.data.own.task import TEST_TEXT, TEXT
from tfm_core.data.own.text_files import NormalisationLog, Upload, read_upload
from tfm_core.data.own.tokens import LABEL, Cutter, learned
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.sentences import N_, Paragraph, StudentError

MIN_ROWS = 10
"""Different sources that a set needs, so that each part of it has some."""
MIN_PAIRS = 2
"""Of pairs, which may be learned by heart: fewer than ``MIN_ROWS`` are in every part."""
_TOO_FEW = {
    "pairs": N_("Different sources: {n}; at least {least} are needed."),
    "labels": N_("Different sentences: {n}; at least {least} are needed."),
}
MAX_LINE = 4_000
"""Characters of one text."""
MAX_CLASSES = 100
_MAX_SPELLINGS = 3  # groups that are listed one by one
_WHOLE = re.compile(r"([-+]?\d+)\.0+")
LONGEST = 128
"""Tokens of a sentence."""
SHARE = 0.1
"""Of the examples, for validation and for the test, each."""
_EMPTY_TEXT = N_("{place} has an empty text.")


def inspect_text(
    kind: str,
    raw: Upload,
    *,
    name: str = "",
    unit: str = "words",
    seed: int = 0,
    test: Upload | None = None,
    layout: ColumnLayout | None = None,
    choices: TextChoices | None = None,
) -> Report:
    """Check a pasted or uploaded text. Never raises for its content.

    kind: "pairs", "labels" or "text". name: of the file. unit: how sentences are cut. seed: of the
    split; test: a test file instead of a share by seed. layout: which columns are read, guessed
    without one.
    """
    choices = choices or TextChoices()
    if kind == "text":
        return running_text(raw, name, unit, test, choices.encoding)
    seeded: dict[str, object] = {"by": "seed", "seed": seed} if test is None else {"by": "file"}
    report = Report(kind, set_name(name, kind), unit, seeded, COLUMNS[kind])
    try:
        records = read_upload(raw, encoding=choices.encoding)
        if layout is None or max(layout.first, layout.second) >= records.width:
            layout = guess(kind, records)
        layout = replace(layout, has_header=layout.has_header and not records.names)
        columns = _columns(records, layout)
        report = replace(report, layout=layout, encoding=records.encoding, **columns)
        files = [_TextFile(records, layout, choices)]
        report = replace(report, problems=tuple(files[0].problems), notes=tuple(files[0].notes))
        if test is not None:
            files.append(_test_file(kind, test, files[0], choices))
        return _inspect_rows(report, files, seed, choices)
    except BadData as error:
        encoding = report.encoding if error.encoding is None else error.encoding
        return replace(report, refusal=error.sentence, encoding=encoding)


def _columns(records: Records, layout: ColumnLayout) -> dict[str, Any]:
    """Return the names of all columns, and the first rows with all of them."""
    head = records.records[0].cells if layout.has_header else records.names
    sample = [record.cells for record in records.records[layout.has_header :][:MAX_PREVIEW]]
    return {
        "names": tuple(" ".join((cell or "").split()) for cell in head),
        "sample": tuple(tuple("…" if one is None else one[:200] for one in row) for row in sample),
    }


class _TextFile:
    """A file in two of its columns: the rows that can be read, and what becomes of its lines."""

    def __init__(self, records: Records, layout: ColumnLayout, choices: TextChoices) -> None:
        """Read every row; problems are listed."""
        self.records, self.layout = records, layout
        self.problems = list(records.problems)
        changes = NormalisationLog()

        def read(row: Row) -> Row:
            cells = row.cells[layout.first], row.cells[layout.second]
            texts = [" ".join(cell.split()) for cell in cells if cell is not None]
            if len(texts) < 2:
                raise StudentError(NOT_TWO_TEXTS, place=row.place)
            longest = max(map(len, texts))
            if all(texts) and longest > MAX_LINE and choices.cut_at is None:
                raise StudentError(
                    "{place} has a text of {n:,} characters; the limit is {most:,}.",
                    place=row.place,
                    n=longest,
                    most=MAX_LINE,
                )
            texts = [text[:MAX_LINE] for text in texts]
            if all(texts) and "\0" in "".join(texts):
                raise StudentError("{place} has a zero byte.", place=row.place)
            if all(texts):
                texts = [changes.cell(text, row.line) for text in texts]
            if not all(texts):
                raise StudentError(_EMPTY_TEXT, place=row.place)
            return replace(row, cells=tuple(texts), is_cut=longest > MAX_LINE)

        def skip(row: Row, why: str) -> None:
            self.problems.append(replace(row, sentence=why))

        body = records.records[layout.has_header :]
        self.rows = [row for _whole, row in read_each(body, read, skip)]
        self.problems.sort(key=lambda row: row.line)
        self.n_lines = sum(row.n_lines for row in self.rows)
        self.notes = [*records.notes, *changes.notes()]

    def drop_duplicates(self, key: Callable[[Row], object]) -> int:
        """Drop rows that are the same to a model; return how many there were."""
        distinct: dict[object, Row] = {}
        for row in self.rows:
            distinct.setdefault(key(row), row)
        n = len(self.rows) - len(distinct)
        self.rows = list(distinct.values())
        return n

    def accounting(self, final: Iterable[Row], problems: Iterable[Row]) -> Accounting:
        """Count what became of the lines."""
        records = self.records
        n_header = records.records[0].n_lines if self.layout.has_header else 0

        def n_of(rows: Iterable[Row]) -> int:
            return sum(row.n_lines for row in rows if row.numbered == records.numbered)

        return Accounting(
            total=records.total,
            kept=n_of(final),
            left_out=n_of(problems),
            repeated=self.n_lines - n_of(self.rows),
            blank=records.blank,
            header=records.n_settings + n_header,
            in_entries=records.numbered in {ENTRY, TEST_ENTRY},
            in_answers=records.is_chat,
        )


def _test_file(kind: str, raw: Upload, main: _TextFile, choices: TextChoices) -> _TextFile:
    """Read a test file in the layout of the main one, where it has the same columns."""
    layout, like = main.layout, main.records
    try:
        records = read_upload(raw, encoding=choices.encoding, is_test=True, width=like.width)
    except BadData as error:
        error.sentence = N_("The test file: {why}", why=error.sentence)
        raise
    guessed = guess(kind, records)
    columns = guessed.first, guessed.second
    if like.names:
        wanted = like.names[layout.first], like.names[layout.second]
        if set(wanted) <= set(records.names):
            columns = records.names.index(wanted[0]), records.names.index(wanted[1])
    elif records.width == like.width and not records.names:
        columns = layout.first, layout.second
    is_guess = layout.has_header == guess(kind, like).has_header
    has_header = guessed.has_header if is_guess else layout.has_header
    if layout.has_header and records.records[0].cells == like.records[0].cells:
        has_header = True
    return _TextFile(records, ColumnLayout(*columns, has_header and not records.names), choices)


def prepare(report: Report, *, name: str = "") -> Prepared:
    """Make a set of a report. Raises ValueError where it is refused."""
    if report.refusal is not None:
        raise StudentError(report.refusal)
    name = set_name(name or report.name, report.kind)
    if report.kind == "text":
        files = {TEXT: report.text.encode(), TOKENS: _tokens(report)}
        if report.test:
            files[TEST_TEXT] = report.test.encode()
        return Prepared("text", name, report.counts, report.split, {"unit": report.unit}, files)
    src, tgt = report.words
    details: dict[str, object] = {
        "unit": report.unit,
        "src_len": max(report.lengths[report.columns[0]]),
        "tgt_len": max(report.lengths[report.columns[1]]),
        "n_src": len(src) + len(SPECIALS),
        "n_tgt": len(tgt) + len(SPECIALS),
        "n_across": report.n_across,
        **_read_as(report),
    }
    files = {TOKENS: _tokens(report)}
    for split in SPLITS:
        rows = [[row.first, row.second] for row in report.rows[split]]
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        files[f"{split}.jsonl"] = ("\n".join(lines) + "\n").encode()
    return Prepared(report.kind, name, report.counts, report.split, details, files)


def _read_as(report: Report) -> dict[str, object]:
    """Return what a set holds of how its file was read; nothing of two columns without names."""
    layout, names = report.layout, report.names
    details: dict[str, object] = {}
    if layout is not None and (names or (layout.first, layout.second) != (0, 1)):
        columns = [layout.first, layout.second]
        details["columns"] = columns
        details["header"] = layout.has_header
        details["names"] = [names[at][:MAX_NAME] for at in columns] if names else []
    if report.is_merged:
        details["merged"] = [list(group) for group in report.spellings]
    return {"read": details} if details else {}


Reader = Callable[[str], tuple[str, ...]]
"""Returns what a model reads of a text: two texts with the same one are the same to it."""
Parts = Mapping[str, tuple[Row, ...]]
Cutters = tuple[Cutter, Cutter]


def _inspect_rows(
    report: Report, files: Sequence[_TextFile], seed: int, choices: TextChoices
) -> Report:
    """Check the rows of a file, and of a test file if there is one. Raises BadData."""
    kind, unit = report.kind, report.unit
    cutter = Cutter(unit)  # texts are the same by their tokens, of byte pairs before any merge
    read = cache(lambda text: cutter.cut(text) or (text,))
    problems = [row for file in files for row in file.problems]
    notes = list(report.notes)
    notes += [N_("The test file: {why}", why=note) for file in files[1:] for note in file.notes]
    spellings: tuple[tuple[str, ...], ...] = ()
    if kind == "labels":
        spellings, more = _with_plain_labels(files, is_merged=choices.merges_labels)
        notes += more
    duplicates = (
        N_("Duplicate lines dropped: {n:,}."),
        N_("Duplicate test lines dropped: {n:,}."),
    )
    for file, dropped in zip(files, duplicates, strict=False):
        if n := file.drop_duplicates(lambda row: (read(row.first), _target(kind, row, read))):
            notes.append(N_(dropped, n=n))
    tests = files[1].rows if files[1:] else None
    parts = _split(kind, files[0].rows, tests, seed, read)
    # byte pairs are learned after the split: the held-out parts teach no merge
    cut_src = learned(unit, (row.first for row in parts["train"]))
    cut_tgt = Cutter(LABEL)
    if kind != "labels":
        cut_tgt = learned(unit, (row.second for row in parts["train"]))
    cutters = cut_src, cut_tgt
    parts, too_long = _short_enough(parts, cutters, choices.cut_at)
    problems += too_long
    n_cut = sum(row.is_cut for part in parts.values() for row in part)
    if n_cut:
        notes.append(N_("Cut at {n} tokens: {n_cut:,} examples.", n=choices.cut_at, n_cut=n_cut))
    if kind == "labels":
        notes += _label_notes(parts)
        parts, unknown = _known_labels(parts)
        problems += unknown
    for split, sentence in _EMPTY.items():
        if not parts[split]:
            raise BadData(sentence)
    report = _counted(report, parts, cutters, read)
    everything = list(dict.fromkeys(row for split in SPLITS for row in parts[split]))
    accounts = [file.accounting(everything, problems) for file in files]
    return replace(
        report,
        problems=tuple(problems),
        notes=(*notes, *_notes(report, read)),
        n_cut=n_cut,
        spellings=spellings,
        is_merged=choices.merges_labels and bool(spellings),
        accounting=accounts[0],
        test_accounting=accounts[1] if accounts[1:] else Accounting(),
    )


def _target(kind: str, row: Row, read: Reader) -> object:
    # a label is one token, however sentences are cut
    return row.second if kind == "labels" else read(row.second)


def _counted(report: Report, parts: Parts, cutters: Cutters, read: Reader) -> Report:
    """Add rows to a report, with what is counted of them. Raises BadData for too many words."""
    train = parts["train"]
    unseen = [row for split in SPLITS[1:] for row in parts[split]]
    everything = list(dict.fromkeys((*train, *unseen)))

    def cut(rows: Iterable[Row], side: int) -> Iterator[tuple[str, ...]]:
        return (cutters[side].cut(row.cells[side] or "") for row in rows)

    words = tuple(
        tuple(sorted({token for tokens in cut(train, side) for token in tokens}))
        for side in range(2)
    )
    limit, longest = MAX_WORDS - len(SPECIALS), max(map(len, words))
    if longest > limit:
        raise BadData(Paragraph("own-data/too-many-words", n=longest, most=limit))
    n_unknown = n_tokens = 0
    for side, known in enumerate(map(set, words)):
        for tokens in cut(unseen, side):
            n_tokens += len(tokens)
            n_unknown += sum(token not in known for token in tokens)
    seen = {read(row.first) for row in train}
    balance = Counter(row.second for row in everything if report.kind == "labels")
    return replace(
        report,
        rows=parts,
        counts={split: len(part) for split, part in parts.items()},
        lengths={
            column: tuple(len(tokens) for tokens in cut(everything, side))
            for side, column in enumerate(report.columns)
        },
        balance=dict(sorted(balance.items(), key=lambda one: (-one[1], one[0]))),
        n_across=sum(read(row.first) in seen for row in unseen),
        n_unknown=n_unknown,
        n_tokens=n_tokens,
        cutters=cutters,
        words=words,
    )


def _split(
    kind: str, rows: list[Row], tests: list[Row] | None, seed: int, read: Reader
) -> dict[str, tuple[Row, ...]]:
    """Split rows: one source stays in one part, training gets each label. Raises BadData.

    Few pairs are in all parts.
    """
    by_source: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_source[read(row.first)].append(row)
    n_sources = len(by_source)
    least = MIN_PAIRS if kind == "pairs" else MIN_ROWS
    if n_sources < least:
        raise BadData(N_(_TOO_FEW[kind], n=n_sources, least=least))
    if n_sources < MIN_ROWS:
        return {"train": tuple(rows), "validation": tuple(rows), "test": tuple(tests or rows)}
    groups = list(by_source.values())
    random.Random(f"own data {seed}").shuffle(groups)
    if kind == "labels":  # the first of each label is for training
        firsts = {group[0].second: group for group in reversed(groups)}
        groups.sort(key=lambda group: firsts[group[0].second] is not group, reverse=True)
    n_held = max(1, round(SHARE * len(groups)))
    parts = {"validation": groups[:n_held]}
    if tests is None:
        parts["test"] = groups[n_held : 2 * n_held]
        parts["train"] = groups[2 * n_held :]
    else:
        parts["train"] = groups[n_held:]
    flat = {
        split: tuple(sorted((row for group in part for row in group), key=lambda row: row.line))
        for split, part in parts.items()
    }
    return {split: tuple(tests or ()) if split not in flat else flat[split] for split in SPLITS}


def _short_enough(
    parts: Parts, cutters: Cutters, cut_at: int | None
) -> tuple[dict[str, tuple[Row, ...]], list[Row]]:
    """Cut long rows, or drop them, and those without a token; return the problems too."""
    problems: list[Row] = []
    most = min(cut_at or LONGEST, LONGEST)

    def fitting(rows: tuple[Row, ...]) -> Iterator[Row]:
        for row in rows:
            sizes = len(cutters[0].cut(row.first)), len(cutters[1].cut(row.second))
            if 0 < min(sizes) <= max(sizes) <= most:
                yield row
                continue
            if cut_at is not None and min(sizes):
                first = cutters[0].join(list(cutters[0].cut(row.first)[:most])).strip()
                second = cutters[1].join(list(cutters[1].cut(row.second)[:most])).strip()
                yield replace(row, cells=(first, second), is_cut=True)
                continue
            words = N_("{place} has a text without a word.", place=row.place)
            if min(sizes):
                limit = N_("{place} has {n} tokens; the limit is {longest}.")
                words = N_(limit, place=row.place, n=max(sizes), longest=LONGEST)
            problems.append(replace(row, sentence=words))

    remaining = {split: tuple(fitting(rows)) for split, rows in parts.items()}
    return remaining, sorted(problems, key=lambda row: row.line)


_EMPTY = {
    "train": N_("No lines are left for training. Shorten sentences or add lines."),
    "validation": N_("No lines are left for validation. Shorten sentences or add lines."),
    "test": N_("No lines are left for the test. Shorten sentences or add lines."),
}


def _plain_label(label: str) -> str:
    """Return a label as it is compared: a whole number has no fraction, ``1.0`` is ``1``."""
    whole = _WHOLE.fullmatch(label)
    return label if whole is None else whole[1]


def _with_plain_labels(
    files: Sequence[_TextFile], *, is_merged: bool
) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """Give all rows plain labels; return groups of those that differ only in case, and notes.

    The most frequent of a group comes first; is_merged: it stands for all.
    """
    labels = Counter(_plain_label(row.second) for file in files for row in file.rows)
    groups: dict[str, list[str]] = defaultdict(list)
    for label, _n in labels.most_common():
        groups[label.casefold()].append(label)
    spellings = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    merged = {label: group[0] for group in spellings for label in group if is_merged}
    for file in files:
        for at, row in enumerate(file.rows):
            label = _plain_label(row.second)
            file.rows[at] = replace(row, cells=(row.first, merged.get(label, label)))
    notes: list[str] = []
    for group in spellings[:_MAX_SPELLINGS]:
        listed = ", ".join(f"“{label[:40]}”" for label in group)
        words = N_("{labels} differ only in case and stay separate.", labels=listed)
        if is_merged:
            words = N_(
                "{labels} differ only in case and are merged as “{label}”.",
                labels=listed,
                label=group[0][:40],
            )
        notes.append(words)
    return spellings, notes


def _label_notes(parts: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return notes on the labels. Raises BadData where they teach nothing."""
    balance = Counter(row.second for part in parts.values() for row in part)
    if len(balance) > MAX_CLASSES:
        raise BadData(
            "There are {n:,} labels; the limit is {most}. Is another column the label?",
            n=len(balance),
            most=MAX_CLASSES,
        )
    if len(balance) == 1:
        raise BadData(
            "All {n:,} sentences have the label “{label}”. Add sentences with another.",
            n=sum(balance.values()),
            label=next(iter(balance))[:40],
        )
    if strange := [label for label in balance if label in SPECIALS]:
        raise BadData("Rename the label {label}: it is a special token.", label=strange[0])
    rare = [label for label, n in balance.items() if n < 3]
    notes: list[str] = []
    if rare:
        notes.append(
            N_(
                "Labels with fewer than 3 sentences: {n}, such as “{label}”.",
                n=len(rare),
                label=rare[0][:40],
            )
        )
    label, most = balance.most_common(1)[0]
    if most > 0.8 * balance.total():
        notes.append(
            Paragraph("own-data/mostly-one-label", share=most / balance.total(), label=label[:40])
        )
    return notes


def _known_labels(
    parts: Mapping[str, tuple[Row, ...]],
) -> tuple[dict[str, tuple[Row, ...]], list[Row]]:
    """Drop validation and test examples whose label training lacks; return the problems too."""
    train_labels = {row.second for row in parts["train"]}
    template = N_("{place} has the label “{label}”, which never occurs in training.")
    problems = [
        replace(row, sentence=N_(template, place=row.place, label=row.second[:40]))
        for rows in parts.values()
        for row in rows
        if row.second not in train_labels
    ]
    remaining = {
        split: tuple(row for row in rows if row.second in train_labels)
        for split, rows in parts.items()
    }
    return remaining, problems


def _notes(report: Report, read: Reader) -> Iterator[str]:
    train = report.rows["train"]
    sources = Counter(read(row.first) for row in train)
    n_ambiguous = sum(n > 1 for n in sources.values())
    n_unseen = report.counts["validation"] + report.counts["test"]
    if n_ambiguous:
        yield N_(
            "Training sources with several answers: {n:,}; no model can give all.", n=n_ambiguous
        )
    if report.kind == "pairs" and len({row.second for row in train}) == 1:
        yield N_("All training targets are the same: there is nothing to learn.")
    if len(sources) < MIN_ROWS and report.counts["validation"] == report.counts["train"]:
        yield Paragraph("own-data/by-heart", n=len(sources), least=MIN_ROWS)
    elif report.n_across:
        yield N_(
            "Unseen examples with a training source: {n:,} of {all:,}; partly memory.",
            n=report.n_across,
            all=n_unseen,
        )
    if report.n_unknown:
        yield N_(
            "Unseen tokens missing from training: {n:,} of {all:,}; read as <unk>.",
            n=report.n_unknown,
            all=report.n_tokens,
        )


def _tokens(report: Report) -> bytes:
    """Return how texts are cut and the vocabularies: of source and target, or of the text."""
    sides = [
        {"cut": cutter.to_json(), "words": words}
        for cutter, words in zip(report.cutters, report.words, strict=True)
    ]
    return json.dumps(sides, ensure_ascii=False).encode()
