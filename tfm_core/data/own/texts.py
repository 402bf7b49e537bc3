"""Sentences and texts of one's own: looked through, said what is wrong with them, made a set.

A split by seed keeps all lines of one source together, so that no unseen example was seen; sources
are the same where a model reads the same tokens. Merges and vocabularies are learned from the
training part alone. Nothing is written here.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from tfm_core.config.own_tasks import MOST_TOKENS, MOST_WORDS
from tfm_core.data.own.classes import known_labels, of_classes
from tfm_core.data.own.normal import normalised_rows
from tfm_core.data.own.report import Report, set_name
from tfm_core.data.own.rows import BadData, Problem, Row, decoded, table
from tfm_core.data.own.running import running_text
from tfm_core.data.own.sets import TOKENS, Prepared
from tfm_core.data.own.text import FILE, TEST
from tfm_core.data.own.tokens import CUTS, LABEL, Cutter, learned
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.sentences import N_, StudentError

LEAST_ROWS = 10
"""Different sources that a set needs, so that each part of it has some."""
LONGEST = 128
"""Tokens of a sentence that is taken, unless asked for otherwise."""
SHARE = 0.1
"""Of the examples, for validation and for the test, each."""

_SPLITS = ("train", "validation", "test")


def inspect_text(
    kind: str,
    raw: bytes | str,
    *,
    name: str = "",
    unit: str = "words",
    seed: int = 0,
    test: bytes | str | None = None,
    longest: int = LONGEST,
    is_swapped: bool = False,
) -> Report:
    """Look through what was pasted or chosen. Never raises for what is in it.

    kind: "pairs", "labels" or "text". name: of the file. unit: how sentences are cut. seed: of the
    split; test: a test file of one's own instead of a share by seed. longest: tokens of a sentence
    that is taken. is_swapped: the second column is what is read.
    """
    if kind == "text":
        return running_text(raw, name, unit, test)
    seeded: dict[str, object] = {"by": "seed", "seed": seed} if test is None else {"by": "file"}
    blank = Report(kind, set_name(name, kind), unit, seeded, COLUMNS[kind])
    try:
        return _rows(blank, raw, test, seed, min(longest, MOST_TOKENS), is_swapped)
    except BadData as error:
        return replace(blank, refusal=error.sentence)


def prepare(report: Report, *, name: str = "") -> Prepared:
    """Make a set of what was found. Raises ValueError, in a sentence, where none can be kept."""
    if report.refusal is not None:
        raise StudentError(report.refusal)
    name = set_name(name or report.name, report.kind)
    if report.kind == "text":
        files = {FILE: report.text.encode(), TOKENS: _tokens(report)}
        if report.test:
            files[TEST] = report.test.encode()
        return Prepared("text", name, report.counts, report.split, {"unit": report.unit}, files)
    src, tgt = report.words
    details: dict[str, object] = {
        "unit": report.unit,
        "src_len": max(report.lengths[report.columns[0]]),
        "tgt_len": max(report.lengths[report.columns[1]]),
        "n_src": len(src) + len(SPECIALS),
        "n_tgt": len(tgt) + len(SPECIALS),
        "n_across": report.n_across,
    }
    files = {f"{split}.jsonl": _lines(report.rows[split]) for split in _SPLITS}
    files[TOKENS] = _tokens(report)
    return Prepared(report.kind, name, report.counts, report.split, details, files)


COLUMNS = {"pairs": (N_("source"), N_("target")), "labels": (N_("sentence"), N_("label"))}
"""What the two texts of a row are, by kind."""


def _rows(
    blank: Report, raw: bytes | str, test: bytes | str | None, seed: int, longest: int, swap: bool
) -> Report:
    """Look through rows of two texts. Raises BadData."""
    kind, unit = blank.kind, blank.unit
    found = table(decoded(raw))
    rows, problems = _turned(kind, found.rows, found.columns, swap), list(found.problems)
    rows, empty, notes = normalised_rows(rows)
    problems += empty
    read = _reader(unit)
    rows, n_twice = _once(kind, rows, read)
    if n_twice:
        notes.append(N_("{n:,} lines say what an earlier one says; they are left out.", n=n_twice))
    tests = None
    if test is not None:
        tests, more, changed, n_twice = _tests(kind, test, found.columns, swap, read)
        problems += more
        notes += changed
        if n_twice:
            notes.append(
                N_("{n:,} lines of the test file stand in it twice; they count once.", n=n_twice)
            )
    parts = _split(kind, rows, tests, seed, read)
    cutters = _cutters(kind, unit, parts["train"])
    parts, too_long = _short_enough(parts, cutters, longest)
    problems += too_long
    if kind == "labels":
        notes += of_classes(parts)
        parts, unknown = known_labels(parts)
        problems += unknown
    _check_sizes(parts)
    words = _vocabularies(kind, parts["train"], cutters)
    n_unknown, n_tokens = _unknown(parts, cutters, words)
    seen = {read(row.first) for row in parts["train"]}
    n_across = sum(read(row.first) in seen for split in _SPLITS[1:] for row in parts[split])
    everything = [row for split in _SPLITS for row in parts[split]]
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
    )
    return replace(report, notes=(*notes, *_notes(report, read)))


def _tests(
    kind: str, raw: bytes | str, columns: tuple[str, ...], swap: bool, read: Reader
) -> tuple[list[Row], list[Problem], list[str], int]:
    """Return the rows of a test file, what is wrong in it, notes, and how many it holds twice."""
    try:
        found = table(decoded(raw))
    except BadData as error:
        raise BadData("The test file: {why}", why=error.sentence) from None
    turned = _turned(kind, found.rows, found.columns or columns, swap)
    rows, empty, notes = normalised_rows(turned)
    problems = [
        Problem(one.line, N_("The test file: {why}", why=one.sentence))
        for one in (*found.problems, *empty)
    ]
    rows, n_twice = _once(kind, rows, read)
    return rows, problems, [N_("The test file: {why}", why=note) for note in notes], n_twice


def _turned(kind: str, rows: Sequence[Row], columns: tuple[str, ...], swap: bool) -> list[Row]:
    """Return rows whose first text is what is read; labels may stand in either column."""
    if kind == "labels":
        header = [name.strip().lower() for name in columns]
        named = [place for place, name in enumerate(header) if name in _LABELS]
        firsts, seconds = {row.first for row in rows}, {row.second for row in rows}
        is_first = named == [0] if named else len(firsts) < len(seconds)
        swap = swap != is_first
    return [Row(row.line, row.second, row.first) for row in rows] if swap else list(rows)


_LABELS = {"label", "class", "category", "sentiment", "y"}


Reader = Callable[[str], tuple[str, ...]]
"""Returns what a model reads of a text: two texts with the same one are the same to it."""


def _reader(unit: str) -> Reader:
    """Return how texts are compared: by tokens, of byte pairs before any merge is learned."""
    cutter = Cutter(unit)
    return cache(lambda text: cutter.cut(text) or (text,))


def _once(kind: str, rows: Iterable[Row], read: Reader) -> tuple[list[Row], int]:
    """Return rows without those that say what an earlier one says, and how many those were."""
    known: dict[tuple[object, object], Row] = {}
    n_rows = 0
    for row in rows:
        second = row.second if kind == "labels" else read(row.second)
        known.setdefault((read(row.first), second), row)
        n_rows += 1
    return list(known.values()), n_rows - len(known)


def _split(
    kind: str, rows: list[Row], tests: list[Row] | None, seed: int, read: Reader
) -> dict[str, tuple[Row, ...]]:
    """Share rows out: all of one source go to one part, and training has each label. BadData."""
    by_source: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_source[read(row.first)].append(row)
    if len(by_source) < LEAST_ROWS:
        raise BadData(
            "There are {n} different {what}, but it takes {least} to learn from some and measure "
            "on others; add more.",
            n=len(by_source),
            what=N_("sentences") if kind == "labels" else N_("sources"),
            least=LEAST_ROWS,
        )
    groups = list(by_source.values())
    random.Random(f"own data {seed}").shuffle(groups)
    if kind == "labels":  # the first of each label is for training
        seen: set[str] = set()
        groups.sort(key=lambda group: _is_known(group[0].second, seen), reverse=True)
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
    return {split: tuple(tests or ()) if split not in flat else flat[split] for split in _SPLITS}


def _is_known(label: str, seen: set[str]) -> bool:
    is_known = label in seen
    seen.add(label)
    return is_known


def _cutters(kind: str, unit: str, train: Sequence[Row]) -> tuple[Cutter, Cutter]:
    src = learned(unit, (row.first for row in train))
    return src, Cutter(LABEL) if kind == "labels" else learned(unit, (row.second for row in train))


def _short_enough(
    parts: Mapping[str, tuple[Row, ...]], cutters: tuple[Cutter, Cutter], longest: int
) -> tuple[dict[str, tuple[Row, ...]], list[Problem]]:
    """Leave out what has more tokens than it may have, or none."""
    kind = CUTS[cutters[0].unit].kind
    problems: list[Problem] = []

    def fitting(rows: tuple[Row, ...]) -> Iterator[Row]:
        for row in rows:
            sizes = len(cutters[0].cut(row.first)), len(cutters[1].cut(row.second))
            if min(sizes) == 0:
                words = N_("Line {line} has a text without a single word.", line=row.line)
                problems.append(Problem(row.line, words))
            elif max(sizes) > longest:
                words = N_(
                    "Line {line} has {n} {kind}s, but at most {longest} are taken.",
                    line=row.line,
                    n=max(sizes),
                    kind=kind,
                    longest=longest,
                )
                problems.append(Problem(row.line, words))
            else:
                yield row

    left = {split: tuple(fitting(rows)) for split, rows in parts.items()}
    return left, sorted(problems, key=lambda one: one.line or 0)


def _check_sizes(parts: Mapping[str, Sequence[Row]]) -> None:
    for split in _SPLITS:
        if not parts[split]:
            raise BadData(
                "Nothing is left for the part {split}: every line of it was left out. Allow longer "
                "sentences, or add more lines.",
                split=split,
            )


def _vocabularies(
    kind: str, train: Sequence[Row], cutters: tuple[Cutter, Cutter]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tokens of the training part, sorted. Raises BadData for too many."""
    made = (
        tuple(sorted({token for row in train for token in cutters[0].cut(row.first)})),
        tuple(sorted({token for row in train for token in cutters[1].cut(row.second)})),
    )
    for words in made:
        if len(words) + len(SPECIALS) > MOST_WORDS:
            raise BadData(
                "There are {n:,} different words, but a vocabulary may have {most:,}; cut the "
                "sentences by byte-pair encoding or characters.",
                n=len(words),
                most=MOST_WORDS - len(SPECIALS),
            )
    return made


def _unknown(
    parts: Mapping[str, Sequence[Row]],
    cutters: tuple[Cutter, Cutter],
    words: tuple[tuple[str, ...], tuple[str, ...]],
) -> tuple[int, int]:
    """Return how many tokens of validation and test are unknown, and of how many."""
    src, tgt = map(set, words)
    n_unknown = n_tokens = 0
    for split in _SPLITS[1:]:
        for row in parts[split]:
            one, other = cutters[0].cut(row.first), cutters[1].cut(row.second)
            n_tokens += len(one) + len(other)
            n_unknown += sum(t not in src for t in one) + sum(t not in tgt for t in other)
    return n_unknown, n_tokens


def _notes(report: Report, read: Reader) -> Iterator[str]:
    train = report.rows["train"]
    sources = Counter(read(row.first) for row in train)
    n_ambiguous = sum(n > 1 for n in sources.values())
    n_unseen = report.counts["validation"] + report.counts["test"]
    if n_ambiguous:
        yield N_(
            "{n:,} sources of the training part have several different answers: no model can give "
            "all of them.",
            n=n_ambiguous,
        )
    if report.kind == "pairs" and len({row.second for row in train}) == 1:
        yield N_("All targets of the training part are the same: there is nothing to learn.")
    if report.n_across:
        yield N_(
            "{n:,} of the {all:,} unseen examples have a source that training holds too: what is "
            "measured on them is partly what was learned by heart.",
            n=report.n_across,
            all=n_unseen,
        )
    if report.n_unknown:
        yield N_(
            "{n:,} of the {all:,} tokens of the unseen examples never stand in training; a model "
            "reads each of them as <unk>, and cannot write it.",
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


def _lines(rows: Sequence[Row]) -> bytes:
    lines = [json.dumps([row.first, row.second], ensure_ascii=False) for row in rows]
    return ("\n".join(lines) + "\n").encode()
