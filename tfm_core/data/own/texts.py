"""Custom sentences: checked, reported on, split and made a set.

A split by seed keeps all lines of one source together, so that no unseen example was seen; sources
are the same where a model reads the same tokens. Merges and vocabularies are learned from the
training part alone. Nothing is written here.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tfm_core.config.own_tasks import MAX_WORDS
from tfm_core.data.own.classes import (
    known_labels,
    label_notes,
    plain_label,
    spelling_notes,
    spellings_of,
)
from tfm_core.data.own.layout import ColumnLayout, guess
from tfm_core.data.own.records import ENTRY, TEST_ENTRY, BadData, LineProblem, Records
from tfm_core.data.own.report import COLUMNS, MAX_PREVIEW, SPLITS, Report, TextChoices, set_name
from tfm_core.data.own.rows import Accounting, TextRow, normalised_rows, rows_of
from tfm_core.data.own.running import running_text
from tfm_core.data.own.sets import MAX_NAME, TOKENS, Prepared
from tfm_core.data.own.task import TEST_TEXT, TEXT
from tfm_core.data.own.tokens import LABEL, Cutter, learned
from tfm_core.data.own.uploads import Upload, read_upload
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
LONGEST = 128
"""Tokens of a sentence."""
SHARE = 0.1
"""Of the examples, for validation and for the test, each."""


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
    blank = Report(kind, set_name(name, kind), unit, seeded, COLUMNS[kind])
    try:
        records = read_upload(raw, encoding=choices.encoding)
        if layout is None or max(layout.first, layout.second) >= records.width:
            layout = guess(kind, records)
        layout = replace(layout, has_header=layout.has_header and not records.names)
        columns = _columns(records, layout)
        blank = replace(blank, layout=layout, encoding=records.encoding, **columns)
        rows, problems = rows_of(records, layout, is_cut=choices.cut_at is not None)
        rows, empty, notes = normalised_rows(rows)
        notes = [*records.notes, *notes]
        blank = replace(blank, problems=(*problems, *empty), notes=tuple(notes))
        tests = None
        if test is not None:
            tests = _read_test_file(kind, test, records, layout, choices)
        return _inspect_rows(blank, records, rows, tests, seed, choices)
    except BadData as error:
        encoding = blank.encoding if error.encoding is None else error.encoding
        return replace(blank, refusal=error.sentence, encoding=encoding)


def _columns(records: Records, layout: ColumnLayout) -> dict[str, Any]:
    """Return the names of all columns, and the first rows with all of them."""
    head = records.records[0].cells if layout.has_header else records.names
    sample = [record.cells for record in records.records[layout.has_header :][:MAX_PREVIEW]]
    return {
        "names": tuple(" ".join((cell or "").split()) for cell in head),
        "sample": tuple(tuple("…" if one is None else one[:200] for one in row) for row in sample),
    }


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


def _inspect_rows(
    blank: Report,
    records: Records,
    rows: list[TextRow],
    test_file: _TestFile | None,
    seed: int,
    choices: TextChoices,
) -> Report:
    """Check rows of two texts. Raises BadData."""
    kind, unit = blank.kind, blank.unit
    cutter = Cutter(unit)  # texts are the same by their tokens, of byte pairs before any merge
    read = cache(lambda text: cutter.cut(text) or (text,))
    all_rows, problems = rows, list(blank.problems)
    notes = list(blank.notes)
    if test_file is not None:
        problems += test_file.problems
        notes += test_file.notes
    spellings: tuple[tuple[str, ...], ...] = ()
    tests = None if test_file is None else test_file.rows
    if kind == "labels":
        spellings = spellings_of(plain_label(row.second) for row in [*rows, *(tests or ())])
        one_label = spellings if choices.merges_labels else ()
        notes += spelling_notes(spellings, is_merged=choices.merges_labels)
        rows = _with_labels(rows, one_label)
        tests = None if tests is None else _with_labels(tests, one_label)
    rows, n_twice = _deduplicated(kind, rows, read)
    if n_twice:
        notes.append(N_("Duplicate lines dropped: {n:,}.", n=n_twice))
    if tests is not None:
        tests, n_twice = _deduplicated(kind, tests, read)
        if n_twice:
            notes.append(N_("Duplicate test lines dropped: {n:,}.", n=n_twice))
    parts = _split(kind, rows, tests, seed, read)
    cut_src = learned(unit, (row.first for row in parts["train"]))
    cut_tgt = Cutter(LABEL)
    if kind != "labels":
        cut_tgt = learned(unit, (row.second for row in parts["train"]))
    cutters = cut_src, cut_tgt
    parts, too_long = _short_enough(parts, cutters, choices.cut_at)
    n_cut = sum(row.is_cut for part in parts.values() for row in part)
    if n_cut:
        notes.append(N_("Cut at {n} tokens: {n_cut:,} examples.", n=choices.cut_at, n_cut=n_cut))
    problems += too_long
    if kind == "labels":
        notes += label_notes(parts)
        parts, unknown = known_labels(parts)
        problems += unknown
    _check_sizes(parts)
    words = _vocabularies(kind, parts["train"], cutters)
    n_unknown, n_tokens = _count_unknown(parts, cutters, words)
    seen = {read(row.first) for row in parts["train"]}
    n_across = sum(read(row.first) in seen for split in SPLITS[1:] for row in parts[split])
    everything = list(dict.fromkeys(row for split in SPLITS for row in parts[split]))
    balance = Counter(row.second for row in everything if kind == "labels")
    report = replace(
        blank,
        rows=parts,
        problems=tuple(problems),
        counts={split: len(part) for split, part in parts.items()},
        lengths={
            blank.columns[0]: tuple(len(cutters[0].cut(row.first)) for row in everything),
            blank.columns[1]: tuple(len(cutters[1].cut(row.second)) for row in everything),
        },
        balance=dict(sorted(balance.items(), key=lambda one: (-one[1], one[0]))),
        n_across=n_across,
        n_unknown=n_unknown,
        n_tokens=n_tokens,
        cutters=cutters,
        words=words,
        n_cut=n_cut,
        spellings=spellings,
        is_merged=choices.merges_labels and bool(spellings),
        accounting=_accounting(records, blank.layout, all_rows, rows, everything, problems),
    )
    if test_file is not None:
        layout, all_tests = test_file.layout, test_file.rows
        lines = _accounting(test_file.found, layout, all_tests, tests or [], everything, problems)
        report = replace(report, test_accounting=lines)
    return replace(report, notes=(*notes, *_notes(report, read)))


@dataclass(frozen=True, slots=True)
class _TestFile:
    """A test file as read."""

    found: Records
    layout: ColumnLayout
    rows: list[TextRow]
    problems: list[LineProblem]
    notes: Sequence[str]


def _read_test_file(
    kind: str, raw: Upload, main: Records, layout: ColumnLayout, choices: TextChoices
) -> _TestFile:
    """Read a test file in the layout of the main one, where it has the same columns."""
    try:
        records = read_upload(raw, encoding=choices.encoding, is_test=True, width=main.width)
    except BadData as error:
        error.sentence = N_("The test file: {why}", why=error.sentence)
        raise
    guessed = guess(kind, records)
    columns = guessed.first, guessed.second
    if main.names:
        wanted = main.names[layout.first], main.names[layout.second]
        if set(wanted) <= set(records.names):
            columns = records.names.index(wanted[0]), records.names.index(wanted[1])
    elif records.width == main.width and not records.names:
        columns = layout.first, layout.second
    is_guess = layout.has_header == guess(kind, main).has_header
    has_header = guessed.has_header if is_guess else layout.has_header
    if layout.has_header and records.records[0].cells == main.records[0].cells:
        has_header = True
    test_layout = ColumnLayout(*columns, has_header and not records.names)
    rows, problems = rows_of(records, test_layout, is_cut=choices.cut_at is not None)
    rows, empty, notes = normalised_rows(rows)
    prefixed = [N_("The test file: {why}", why=note) for note in (*records.notes, *notes)]
    return _TestFile(records, test_layout, rows, problems + empty, prefixed)


def _with_labels(rows: Iterable[TextRow], spellings: Iterable[Sequence[str]]) -> list[TextRow]:
    """Return rows with plain labels, each in the first of its spellings."""
    merged = {label: group[0] for group in spellings for label in group}
    relabelled = []
    for row in rows:
        plain = plain_label(row.second)
        label = merged.get(plain, plain)
        relabelled.append(row if label == row.second else replace(row, second=label))
    return relabelled


def _accounting(
    records: Records,
    layout: ColumnLayout | None,
    rows: Sequence[TextRow],
    distinct: Sequence[TextRow],
    final: Iterable[TextRow],
    problems: Iterable[LineProblem],
) -> Accounting:
    """Count what became of the lines of a file."""
    n_header = records.n_settings
    if layout is not None and layout.has_header:
        n_header += records.records[0].n_lines
    return Accounting(
        total=records.total,
        kept=sum(row.n_lines for row in final if row.numbered == records.numbered),
        left_out=sum(one.n_lines for one in problems if one.numbered == records.numbered),
        repeated=sum(row.n_lines for row in rows) - sum(row.n_lines for row in distinct),
        blank=records.blank,
        header=n_header,
        in_entries=records.numbered in {ENTRY, TEST_ENTRY},
        in_answers=records.is_chat,
    )


Reader = Callable[[str], tuple[str, ...]]
"""Returns what a model reads of a text: two texts with the same one are the same to it."""


def _deduplicated(kind: str, rows: Iterable[TextRow], read: Reader) -> tuple[list[TextRow], int]:
    """Return rows without duplicates, and how many there were."""
    distinct: dict[tuple[object, object], TextRow] = {}
    n_rows = 0
    for row in rows:
        second = row.second if kind == "labels" else read(row.second)
        distinct.setdefault((read(row.first), second), row)
        n_rows += 1
    return list(distinct.values()), n_rows - len(distinct)


def _split(
    kind: str, rows: list[TextRow], tests: list[TextRow] | None, seed: int, read: Reader
) -> dict[str, tuple[TextRow, ...]]:
    """Split rows: one source stays in one part, training gets each label. Raises BadData.

    Few pairs are in all parts.
    """
    by_source: dict[tuple[str, ...], list[TextRow]] = defaultdict(list)
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
    parts: Mapping[str, tuple[TextRow, ...]], cutters: tuple[Cutter, Cutter], cut_at: int | None
) -> tuple[dict[str, tuple[TextRow, ...]], list[LineProblem]]:
    """Cut long rows, or drop them, and those without a token; return the problems too."""
    problems: list[LineProblem] = []
    most = min(cut_at or LONGEST, LONGEST)

    def fitting(rows: tuple[TextRow, ...]) -> Iterator[TextRow]:
        for row in rows:
            sizes = len(cutters[0].cut(row.first)), len(cutters[1].cut(row.second))
            if 0 < min(sizes) <= max(sizes) <= most:
                yield row
                continue
            if cut_at is not None and min(sizes):
                first = cutters[0].join(list(cutters[0].cut(row.first)[:most])).strip()
                second = cutters[1].join(list(cutters[1].cut(row.second)[:most])).strip()
                yield replace(row, first=first, second=second, is_cut=True)
                continue
            words = N_("{place} has a text without a word.", place=row.place)
            if min(sizes):
                limit = N_("{place} has {n} tokens; the limit is {longest}.")
                words = N_(limit, place=row.place, n=max(sizes), longest=LONGEST)
            problems.append(row.problem(words))

    remaining = {split: tuple(fitting(rows)) for split, rows in parts.items()}
    return remaining, sorted(problems, key=lambda one: one.line or 0)


_EMPTY = {
    "train": N_("No lines are left for training. Shorten sentences or add lines."),
    "validation": N_("No lines are left for validation. Shorten sentences or add lines."),
    "test": N_("No lines are left for the test. Shorten sentences or add lines."),
}


def _check_sizes(parts: Mapping[str, Sequence[TextRow]]) -> None:
    for split, sentence in _EMPTY.items():
        if not parts[split]:
            raise BadData(sentence)


def _vocabularies(
    kind: str, train: Sequence[TextRow], cutters: tuple[Cutter, Cutter]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tokens of the training part, sorted. Raises BadData for too many."""
    vocabularies = (
        tuple(sorted({token for row in train for token in cutters[0].cut(row.first)})),
        tuple(sorted({token for row in train for token in cutters[1].cut(row.second)})),
    )
    limit, longest = MAX_WORDS - len(SPECIALS), max(map(len, vocabularies))
    if longest > limit:
        raise BadData(Paragraph("own-data/too-many-words", n=longest, most=limit))
    return vocabularies


def _count_unknown(
    parts: Mapping[str, Sequence[TextRow]],
    cutters: tuple[Cutter, Cutter],
    words: tuple[tuple[str, ...], tuple[str, ...]],
) -> tuple[int, int]:
    """Return how many tokens of validation and test are unknown, and of how many."""
    src, tgt = map(set, words)
    n_unknown = n_tokens = 0
    for split in SPLITS[1:]:
        for row in parts[split]:
            src_tokens, tgt_tokens = cutters[0].cut(row.first), cutters[1].cut(row.second)
            n_tokens += len(src_tokens) + len(tgt_tokens)
            n_unknown += sum(t not in src for t in src_tokens) + sum(
                t not in tgt for t in tgt_tokens
            )
    return n_unknown, n_tokens


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
