"""Custom texts: sentences, and a text to continue, checked, reported on, split and made a set.

A split by seed keeps all lines of one source together, so that no unseen example was seen; sources
are the same where a model reads the same tokens. Merges and vocabularies are learned from the
training part alone. Nothing is written here.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from tfm_core.choices.config.text_tasks import MAX_WORDS
from tfm_core.data.user_data.layout import guess
from tfm_core.data.user_data.records import NOT_TWO_TEXTS, Records
from tfm_core.data.user_data.sets import MAX_NAME, SPLITS, TOKENS, Prepared, UserSet
from tfm_core.data.user_data.task import TEST_TEXT, TEXT, rows_of, sides_of, user_vocabulary
from tfm_core.data.user_data.text_files import (
    NormalisationLog,
    Upload,
    inspect_continued,
    naming_test_file,
    read_upload,
)
from tfm_core.data.user_data.tokens import LABEL, Cutter, learn_from_sentences, learn_from_text
from tfm_core.data.user_data.uploads import (
    GUESSED,
    MAX_PREVIEW,
    Accounting,
    BadData,
    ColumnLayout,
    Item,
    ReadAs,
    Remark,
    Report,
    check,
    kept,
    n_lines,
    read_each,
    set_name,
    skipped,
)
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
_MAX_SPELLINGS = 3  # groups that are listed one by one
_WHOLE = re.compile(r"([-+]?\d+)\.0+")
LONGEST = 128
"""Tokens of a sentence."""
SHARE = 0.1
"""Of the examples, for validation and for the test, each."""
_MAX_CUT = 5_000
"""Rows of a set of which the lengths are counted: the first ones."""
_EMPTY_TEXT = N_("{place} has an empty text.")


def inspect_text(
    kind: str,
    raw: Upload,
    *,
    name: str = "",
    unit: str = "words",
    seed: int = 0,
    test: Upload | None = None,
    choices: ReadAs = GUESSED,
) -> Report:
    """Check a pasted or uploaded text. Never raises for its content.

    kind: "pairs", "labels" or "text". name: of the file. unit: how sentences are cut. seed: of the
    split; test: a test file instead of a share by seed.
    """
    split: dict[str, object] = {"by": "file"}
    if test is None:
        split = {"by": "place"} if kind == "text" else {"by": "seed", "seed": seed}
    report = Report(kind, set_name(name, kind), split, unit=unit)
    try:
        if kind == "text":
            inspect_continued(report, raw, test, choices.encoding)
        else:
            _inspect_rows(report, _files_of(report, raw, test, choices), seed, choices)
    except BadData as error:
        report.refusal = error.sentence
        if error.encoding is not None:
            report.read_as = replace(report.read_as, encoding=error.encoding)
    return report


def _files_of(report: Report, raw: Upload, test: Upload | None, choices: ReadAs) -> list[_TextFile]:
    """Read a file, and a test file if there is one; report the columns. Raises BadData."""
    records, layout = read_upload(raw, encoding=choices.encoding), choices.layout
    if layout is None or max(layout.first, layout.second) >= records.width:
        layout = guess(report.kind, records)
    layout = replace(layout, has_header=layout.has_header and not records.names)
    head = records.records[0].content if layout.has_header else records.names
    sample = [row.content for row in records.records[layout.has_header :][:MAX_PREVIEW]]
    report.read_as = ReadAs(records.encoding, layout)
    report.names = tuple(" ".join((cell or "").split()) for cell in head)
    report.sample = tuple(
        tuple("…" if cell is None else cell[:200] for cell in row) for row in sample
    )
    main = _TextFile(records, layout, choices)
    report.skipped = tuple(main.problems)
    if test is None:
        return [main]
    with naming_test_file():
        return [main, _test_file(report.kind, test, main, choices)]


class _TextFile:
    """A file in two of its columns: the rows that can be read, and what becomes of its lines."""

    def __init__(self, records: Records, layout: ColumnLayout, choices: ReadAs) -> None:
        """Read every row; problems are listed."""
        self.records, self.layout = records, layout
        changes = NormalisationLog()

        def read(row: Item) -> Item:
            cells = row.content[layout.first], row.content[layout.second]
            texts = [" ".join(cell.split()) for cell in cells if cell is not None]
            if len(texts) < 2:
                raise StudentError(NOT_TWO_TEXTS, place=row.place)
            if not all(texts):
                raise StudentError(_EMPTY_TEXT, place=row.place)
            longest = max(map(len, texts))
            if longest > MAX_LINE and choices.cut_at is None:
                raise StudentError(
                    "{place} has a text of {n:,} characters; the limit is {most:,}.",
                    place=row.place,
                    n=longest,
                    most=MAX_LINE,
                )
            texts = [text[:MAX_LINE] for text in texts]
            if "\0" in "".join(texts):
                raise StudentError("{place} has a zero byte.", place=row.place)
            texts = [changes.cell(text, row.line) for text in texts]
            if not all(texts):
                raise StudentError(_EMPTY_TEXT, place=row.place)
            text, label = texts
            return replace(row, content=text, label=label, is_cut=longest > MAX_LINE)

        body = records.records[layout.has_header :]
        every = read_each([*records.problems, *body], read)
        self.rows, self.problems = kept(every), sorted(skipped(every), key=lambda row: row.line)
        self.n_lines = n_lines(self.rows)
        self.notes = [*records.notes, *changes.notes()]

    def drop_duplicates(self, key: Callable[[Item], object]) -> int:
        """Drop rows that are the same to a model; return how many there were."""
        first: dict[object, Item] = {}
        for row in self.rows:
            first.setdefault(key(row), row)
        n = len(self.rows) - len(first)
        self.rows = list(first.values())
        return n

    def accounting(self, final: Iterable[Item], problems: Iterable[Item]) -> Accounting:
        """Count what became of the lines."""
        records = self.records
        n_header = records.records[0].n_lines if self.layout.has_header else 0

        def n_of(rows: Iterable[Item]) -> int:
            return n_lines(row for row in rows if row.numbered == records.numbered)

        return replace(
            records.accounting,
            kept=n_of(final),
            left_out=n_of(problems),
            repeated=self.n_lines - n_of(self.rows),
            header=records.accounting.header + n_header,
        )


def _test_file(kind: str, raw: Upload, main: _TextFile, choices: ReadAs) -> _TextFile:
    """Read a test file in the layout of the main one, where it has the same columns."""
    layout, like = main.layout, main.records
    records = read_upload(raw, encoding=choices.encoding, is_test=True, width=like.width)
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
    if layout.has_header and records.records[0].content == like.records[0].content:
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
    (src, tgt), parts = report.words, report.rows
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
        rows = [list(row.texts) for row in parts[split]]
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        files[f"{split}.jsonl"] = ("\n".join(lines) + "\n").encode()
    return Prepared(report.kind, name, report.counts, report.split, details, files)


def report_of(user_set: UserSet) -> Report:
    """Return what a set holds. Raises SetDamaged."""
    unit = str(user_set.details.get("unit", ""))
    report = Report(user_set.kind, user_set.name, user_set.split, counts=user_set.counts, unit=unit)
    if user_set.kind == "text":
        report.text = text = user_set.content(TEXT).decode(errors="replace")
        kept = user_vocabulary(user_set.id)
        tokens = kept[1] if kept else learn_from_text(unit, text).text_vocabulary(text)
        report.words = (tokens,)
        return report
    report.items = tuple(
        Item(*texts, part, line)
        for part, split in enumerate(SPLITS)
        for line, texts in enumerate(rows_of(user_set, split), 1)
    )
    sides = sides_of(user_set)
    report.cutters = tuple(cutter for cutter, _words in sides)
    report.words = tuple(words for _cutter, words in sides)
    report.lengths = _lengths_of(report, report.distinct[:_MAX_CUT])
    report.n_across = int(user_set.details.get("n_across") or 0)
    return report


def as_lines(report: Report) -> str:
    """Return the rows of a report as they could be pasted again, with a tab between both texts."""
    if report.kind == "text":
        return report.text
    lines = ("\t".join(row.texts) for row in report.items)
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _lengths_of(report: Report, rows: Sequence[Item]) -> dict[str, tuple[int, ...]]:
    """Return the tokens of both texts of each row, by column."""
    return {
        column: tuple(len(report.cutters[side].cut(row.texts[side])) for row in rows)
        for side, column in enumerate(report.columns)
    }


def _read_as(report: Report) -> dict[str, object]:
    """Return what a set holds of how its file was read; nothing of two columns without names."""
    layout, names = report.read_as.layout, report.names
    details: dict[str, object] = {}
    if layout is not None and (names or (layout.first, layout.second) != (0, 1)):
        columns = [layout.first, layout.second]
        details["columns"] = columns
        details["header"] = layout.has_header
        details["names"] = [names[at][:MAX_NAME] for at in columns] if names else []
    if report.read_as.merges_labels:
        details["merged"] = [list(group) for group in report.spellings]
    return {"read": details} if details else {}


Reader = Callable[[str], tuple[str, ...]]
"""Returns what a model reads of a text: two texts with the same one are the same to it."""


def _inspect_rows(report: Report, files: Sequence[_TextFile], seed: int, choices: ReadAs) -> None:
    """Check the rows of a file, and of a test file if there is one. Raises BadData."""
    kind, unit = report.kind, report.unit
    cutter = Cutter(unit)  # texts are the same by their tokens, of byte pairs before any merge
    read = cache(lambda text: cutter.cut(text) or (text,))
    problems = [row for file in files for row in file.problems]
    notes = list(files[0].notes)
    notes += [N_("The test file: {why}", why=note) for file in files[1:] for note in file.notes]
    if kind == "labels":
        notes += _plain_labels(report, files, is_merged=choices.merges_labels is not False)

    def as_read(row: Item) -> object:
        # a label is one token, however sentences are cut
        return read(row.content), row.label if kind == "labels" else read(row.label)

    duplicates = (
        N_("Duplicate lines dropped: {n:,}."),
        N_("Duplicate test lines dropped: {n:,}."),
    )
    for file, dropped in zip(files, duplicates, strict=False):
        if n := file.drop_duplicates(as_read):
            notes.append(N_(dropped, n=n))
    tests = files[1].rows if files[1:] else None
    rows = _split(kind, files[0].rows, tests, seed, read)
    # byte pairs are learned after the split: the held-out parts teach no merge
    cut_src = learn_from_sentences(unit, (row.content for row in rows if not row.split))
    cut_tgt = Cutter(LABEL)
    if kind != "labels":
        cut_tgt = learn_from_sentences(unit, (row.label for row in rows if not row.split))
    cutters = cut_src, cut_tgt
    rows = _read_on(rows, _short_enough(cutters, choices.cut_at), problems)
    if n_cut := sum(row.is_cut for row in rows):
        notes.append(N_("Examples cut at {n} tokens: {n_cut:,}.", n=choices.cut_at, n_cut=n_cut))
    if kind == "labels" and rows:
        notes += _label_notes(rows)
        rows = _read_on(rows, _known({row.label for row in rows if not row.split}), problems)
    report.skipped, report.cutters = tuple(problems), cutters
    there = {row.split or 0 for row in rows}
    if lacking := [split for at, split in enumerate(SPLITS) if at not in there]:
        raise BadData(_EMPTY[lacking[0]])
    train = [row for row in rows if not row.split]
    report.words = tuple(
        tuple(sorted({token for row in train for token in cutter.cut(row.texts[side])}))
        for side, cutter in enumerate(cutters)
    )
    limit, longest = MAX_WORDS - len(SPECIALS), max(map(len, report.words))
    if longest > limit:
        raise BadData(Paragraph("own-data/too-many-words", n=longest, most=limit))
    report.items = tuple(rows)
    everything = report.distinct
    seen = {read(row.content) for row in train}
    report.counts = {split: len(part) for split, part in report.rows.items()}
    report.lengths = _lengths_of(report, everything)
    report.n_across = sum(read(row.content) in seen for row in rows if row.split)
    accounts = [file.accounting(everything, problems) for file in files]
    report.accounting, report.test_accounting = [*accounts, Accounting()][:2]
    worst = max(accounts, key=lambda account: account.share_left_out)
    of_worst = files[accounts.index(worst)].records.numbered
    notes += _notes(report, read)
    report.findings = (
        *worst.warnings(row for row in problems if row.numbered == of_worst),
        *(Remark("warning", note) for note in notes),
    )


def _read_on(
    rows: Sequence[Item], read: Callable[[Item], Item], problems: list[Item]
) -> list[Item]:
    """Return the rows as ``read`` returns them; what it refuses becomes a problem."""
    every = read_each(rows, read)
    # few pairs are in every split, but each is one line
    refused = {
        (row.line, row.numbered, row.texts): found
        for row, found in zip(rows, every, strict=True)
        if found.why
    }
    problems += sorted(refused.values(), key=lambda row: row.line)
    return kept(every)


def _split(
    kind: str, rows: list[Item], tests: list[Item] | None, seed: int, read: Reader
) -> list[Item]:
    """Return rows that say their split, those of training first. Raises BadData.

    One source stays in one part, and training gets each label. Few pairs are in all parts.
    """
    by_source: dict[tuple[str, ...], list[Item]] = defaultdict(list)
    for row in rows:
        by_source[read(row.content)].append(row)
    n_sources = len(by_source)
    least = MIN_PAIRS if kind == "pairs" else MIN_ROWS
    if n_sources < least:
        raise BadData(N_(_TOO_FEW[kind], n=n_sources, least=least))
    parts = [rows, rows, rows]
    if n_sources >= MIN_ROWS:
        groups = list(by_source.values())
        random.Random(f"own data {seed}").shuffle(groups)
        if kind == "labels":  # the first of each label is for training
            firsts = {group[0].label: group for group in reversed(groups)}
            groups.sort(key=lambda group: firsts[group[0].label] is not group, reverse=True)
        n_held = max(1, round(SHARE * len(groups)))
        n_test = n_held if tests is None else 0
        bounds = groups[n_held + n_test :], groups[:n_held], groups[n_held : n_held + n_test]
        parts = [
            sorted((row for group in part for row in group), key=lambda row: row.line)
            for part in bounds
        ]
    parts[-1] = tests or parts[-1]
    return [replace(row, split=at) if at else row for at, part in enumerate(parts) for row in part]


def _short_enough(cutters: Sequence[Cutter], cut_at: int | None) -> Callable[[Item], Item]:
    """Return what cuts long rows, or refuses them, and those without a token."""
    most = min(cut_at or LONGEST, LONGEST)

    def fitting(row: Item) -> Item:
        both = [cutter.cut(text) for cutter, text in zip(cutters, row.texts, strict=True)]
        sizes = list(map(len, both))
        if not min(sizes):
            raise StudentError("{place} has a text without a word.", place=row.place)
        if max(sizes) <= most:
            return row
        if cut_at is None:
            limit = N_("{place} has {n} tokens; the limit is {longest}.")
            raise StudentError(limit, place=row.place, n=max(sizes), longest=LONGEST)
        text, label = (
            cutter.join(tokens[:most]).strip() for cutter, tokens in zip(cutters, both, strict=True)
        )
        return replace(row, content=text, label=label, is_cut=True)

    return fitting


def _known(train_labels: Container[str]) -> Callable[[Item], Item]:
    """Return what refuses an example whose label training lacks."""

    def known(row: Item) -> Item:
        if row.label not in train_labels:
            raise StudentError(
                "{place} has the label “{label}”, which never occurs in training.",
                place=row.place,
                label=row.label[:40],
            )
        return row

    return known


_EMPTY = {
    "train": N_("No lines are left for training. Shorten sentences or add lines."),
    "validation": N_("No lines are left for validation. Shorten sentences or add lines."),
    "test": N_("No lines are left for the test. Shorten sentences or add lines."),
}


def _plain_labels(report: Report, files: Sequence[_TextFile], *, is_merged: bool) -> Iterator[str]:
    """Give all rows plain labels, ``1`` for ``1.0``; yield notes on those that differ only in case.

    The most frequent of a group comes first; is_merged: it stands for all.
    """

    def plain(row: Item) -> str:
        whole = _WHOLE.fullmatch(row.label)
        return row.label if whole is None else whole[1]

    labels = Counter(plain(row) for file in files for row in file.rows)
    groups: dict[str, list[str]] = defaultdict(list)
    for label, _n in labels.most_common():
        groups[label.casefold()].append(label)
    report.spellings = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    merged = {label: group[0] for group in report.spellings for label in group if is_merged}
    for file in files:
        for at, row in enumerate(file.rows):
            label = plain(row)
            file.rows[at] = replace(row, label=merged.get(label, label))
    if report.spellings:
        report.read_as = replace(report.read_as, merges_labels=is_merged)
    for group in report.spellings[:_MAX_SPELLINGS]:
        listed = ", ".join(f"“{label[:40]}”" for label in group)
        if is_merged:
            words = N_("{labels} differ only in case and are merged as “{label}”.")
            yield N_(words, labels=listed, label=group[0][:40])
        else:
            yield N_("{labels} differ only in case and stay separate.", labels=listed)


def _label_notes(rows: Iterable[Item]) -> Iterator[str]:
    """Yield notes on the labels. Raises BadData where they teach nothing."""
    balance = Counter(row.label for row in rows)
    check("labels", len(balance))
    if len(balance) == 1:
        raise BadData(
            "All {n:,} sentences have the label “{label}”. Add sentences with another.",
            n=sum(balance.values()),
            label=next(iter(balance))[:40],
        )
    if strange := [label for label in balance if label in SPECIALS]:
        raise BadData("Rename the label {label}: it is a special token.", label=strange[0])
    if rare := [label for label, n in balance.items() if n < 3]:
        words = N_("Labels with fewer than 3 sentences: {n}, such as “{label}”.")
        yield N_(words, n=len(rare), label=rare[0][:40])
    ((label, most),) = balance.most_common(1)
    if most > 0.8 * balance.total():
        share = most / balance.total()
        yield Paragraph("own-data/mostly-one-label", share=share, label=label[:40])


def _notes(report: Report, read: Reader) -> Iterator[str]:
    """Yield notes on what no model can learn, and what unseen rows share with training or lack."""
    train, unseen = report.rows["train"], [row for row in report.items if row.split]
    sources = Counter(read(row.content) for row in train)
    if n_ambiguous := sum(n > 1 for n in sources.values()):
        yield N_(
            "Training sources with several answers: {n:,}; no model can give all.", n=n_ambiguous
        )
    if report.kind == "pairs" and len({row.label for row in train}) == 1:
        yield N_("All training targets are the same, so there is nothing to learn.")
    if len(sources) < MIN_ROWS and report.counts["validation"] == report.counts["train"]:
        yield Paragraph("own-data/by-heart", n=len(sources), least=MIN_ROWS)
    elif report.n_across:
        words = N_(
            "Unseen examples with a source from training: {n:,} of {all:,}. They partly measure "
            "memory."
        )
        yield N_(words, n=report.n_across, all=len(unseen))
    n_unknown = n_tokens = 0
    for side, (cutter, known) in enumerate(
        zip(report.cutters, map(set, report.words), strict=True)
    ):
        for row in unseen:
            tokens = cutter.cut(row.texts[side])
            n_tokens += len(tokens)
            n_unknown += sum(token not in known for token in tokens)
    if n_unknown:
        words = N_(
            "Unseen tokens that are not in training: {n:,} of {all:,}. The model reads them as "
            "<unk>."
        )
        yield N_(words, n=n_unknown, all=n_tokens)


def _tokens(report: Report) -> bytes:
    """Return how texts are cut and the vocabularies: of source and target, or of the text."""
    sides = [
        {"cut": cutter.to_json(), "words": words}
        for cutter, words in zip(report.cutters, report.words, strict=True)
    ]
    return json.dumps(sides, ensure_ascii=False).encode()
