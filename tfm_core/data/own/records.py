"""The records of a text file: every column of every row, whatever the format.

Tab-separated text is literal: a line is a row, and quotation marks are text. Commas, semicolons
and bars follow RFC 4180, where a quoted text may hold the delimiter and span lines, and so do notes
of Anki. JSON is a list of records, or one record a line; a chat has a record for each answer.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tfm_core.data.own import anki, chats
from tfm_core.reading import Unreadable, is_text, json_of
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError

LINE, ENTRY = N_("Line {line}"), N_("Entry {line}")
TEST_LINE, TEST_ENTRY = N_("Line {line} of the test file"), N_("Entry {line} of the test file")
"""How a place in a file is called; a JSON list has entries, because it may stand on one line."""

MAX_ROWS = 200_000
_DELIMITERS = ("\t", ";", ",", "|")
_SEPARATOR = re.compile(rf"sep=([{''.join(_DELIMITERS)}])")  # a first line that Excel writes
_N_SAMPLED = 200  # lines from which the format is guessed
_MIN_ROWS_IN_QUOTES = 3
"""Lines of a quoted text, most of which look like rows of the table, that mean a missing quote."""

Cells = tuple[str | None, ...]


class BadData(StudentError):
    """The upload cannot be used at all. encoding: the wrong one of its text, "" for no guess."""

    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Why lines are skipped. line: the first one, counted from 1; None for the whole file."""

    line: int | None
    sentence: str
    n_lines: int = 1
    numbered: str = LINE

    @property
    def is_in_test_file(self) -> bool:
        """Whether the line is one of a test file."""
        return self.numbered in {TEST_LINE, TEST_ENTRY}


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One row of a file: its first line, how many lines it spans, its cells; None is not a text."""

    line: int
    n_lines: int
    cells: Cells


@dataclass(frozen=True, slots=True)
class Records:
    """All that a file holds. Its lines are in records, problems, blank or settings: ``total``.

    names: of the columns, where the format has them (JSON objects). width: columns of each record.
    numbered: how a place is called, see ``LINE``. n_settings: lines on the format. notes: on how
    the file was read, in which encoding. is_chat: what is counted are answers of chats, not lines.
    """

    records: tuple[FileRecord, ...]
    problems: tuple[LineProblem, ...]
    width: int
    total: int
    blank: int
    numbered: str
    names: tuple[str, ...] = ()
    n_settings: int = 0
    notes: tuple[str, ...] = ()
    encoding: str = "utf-8"
    is_chat: bool = False


def read_records(text: str, *, is_test: bool = False, width: int = 0) -> Records:
    """Return the records of a text. Raises BadData where it has no two columns.

    width: columns that the records should have, where some have as many; otherwise the most common
    number of at least 2 is taken. Records with another number are problems.
    """
    if not text.strip():
        raise BadData("Paste some lines or choose a file.")
    entries = _json_values(text)
    if entries is not None:
        check_number(len(entries))
        entries = [entry if isinstance(entry, dict | list) else None for entry in entries]
        return of_values(entries, numbered=TEST_ENTRY if is_test else ENTRY, width=width)
    numbered = TEST_LINE if is_test else LINE
    if (n_lines := text.count("\n")) > 10 * MAX_ROWS:
        check_number(n_lines)
    lines = text.removesuffix("\n").split("\n")
    if _is_json_lines(lines):
        check_number(sum(not line.isspace() for line in lines if line))
        values = [_parsed(line) if line.strip() else "" for line in lines]
        return of_values(values, numbered=numbered, width=width, wrong=_NOT_JSON)
    settings = anki.settings_of(lines)
    n_settings, delimiter = len(settings), anki.separator_of(settings)
    if named := _SEPARATOR.fullmatch(lines[0]):
        n_settings, delimiter = 1, named[1]
    lines[:n_settings] = [""] * n_settings
    delimiter = delimiter or _delimiter_of(lines)
    records: list[FileRecord] = []
    n_filled = 0
    for record in _delimited(lines, delimiter, is_quoted=bool(settings)):
        n_filled += not _is_blank(record, delimiter)
        check_number(n_filled)
        records.append(record)
    if ("html", "true") in settings:
        plain = anki.without_tags
        records = [replace(one, cells=tuple(map(plain, one.cells))) for one in records]
    found = of_one_width(records, numbered, width, delimiter)
    names = anki.names_of(settings, found.width, delimiter)
    n_blank = found.blank - n_settings
    found = replace(found, names=names, n_settings=n_settings, blank=n_blank)
    if settings:
        said = ", ".join(f"{name}: {value}" for name, value in settings)[:200]
        note = N_("Read with Anki's settings: {settings}.", settings=said)
        found = replace(found, notes=(note, *found.notes))
    return found


def check_number(n: int) -> None:
    """Raise BadData for more rows than a set may have."""
    if n > MAX_ROWS + 1:  # one more for a header
        raise BadData("This has more than {most:,} rows. Remove some.", most=MAX_ROWS)


@dataclass(frozen=True, slots=True)
class _Unclosed(FileRecord):
    """A line whose quotes do not fit; its cells as they are when a stray quote is text."""


@dataclass(frozen=True, slots=True)
class _Unreadable(FileRecord):
    """A line or entry that holds no record. template: why, with ``{place}``."""

    template: str


def of_one_width(
    candidates: Sequence[FileRecord], numbered: str, width: int, delimiter: str | None
) -> Records:
    """Return the records of one width; the others become problems. delimiter: None of JSON."""
    filled = [record for record in candidates if not _is_blank(record, delimiter)]
    width = _width_of(filled, width)
    records: list[FileRecord] = []
    problems: list[LineProblem] = []
    unclosed: list[int] = []
    for record in filled:
        cells = record.cells
        if len(cells) > width and _is_empty(cells[width:]):
            cells = cells[:width]
        if len(cells) == width and not isinstance(record, _Unreadable):
            records.append(record if cells is record.cells else replace(record, cells=cells))
            if isinstance(record, _Unclosed):
                unclosed.append(record.line)
        else:
            why = _why(record, N_(numbered, line=record.line), width, delimiter)
            problems.append(LineProblem(record.line, why, record.n_lines, numbered))
    if not records:
        raise BadData(Paragraph("own-data/no-pairs", why=problems[0].sentence if problems else ""))
    total = sum(record.n_lines for record in candidates)
    blank = total - sum(record.n_lines for record in filled)
    found = Records(tuple(records), tuple(problems), width, total, blank, numbered)
    if not unclosed:
        return found
    lines = ", ".join(map(str, unclosed[:10])) + (" …" if len(unclosed) > 10 else "")
    note = N_(
        "Unclosed quotation marks read as text: {n:,}, on lines {lines}.",
        n=len(unclosed),
        lines=lines,
    )
    return replace(found, notes=(note,))


def _is_blank(record: FileRecord, delimiter: str | None) -> bool:
    """Return whether a line holds no text; in JSON a line must be empty, not only its texts."""
    return _is_empty(record.cells) and (delimiter is not None or len(record.cells) == 1)


def _is_empty(cells: Cells) -> bool:
    return all(cell is not None and not cell.strip() for cell in cells)


def _width_of(records: Sequence[FileRecord], width: int) -> int:
    widths = Counter(len(record.cells) for record in records if not isinstance(record, _Unreadable))
    if width > 1 and widths[width]:
        return width
    several = {n: times for n, times in widths.items() if n > 1}
    return max(several, key=lambda n: (several[n], -n)) if several else 2


def _why(record: FileRecord, place: Sentence, width: int, delimiter: str | None) -> Sentence:
    n = len(record.cells)
    if isinstance(record, _Unreadable):
        return N_(record.template, place=place)
    if isinstance(record, _Unclosed):
        return N_(
            "{place} has an unclosed quotation mark and {n} columns instead of {width}.",
            place=place,
            n=n,
            width=width,
        )
    if n < width or delimiter in {None, "\t"}:
        return N_("{place}: expected {width} columns, got {n}.", n=n, place=place, width=width)
    return Paragraph("own-data/columns", place=place, n=n, width=width)


# Text with a delimiter


def _delimiter_of(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts most lines into the same number of columns, two or more."""
    sample = lines[:_N_SAMPLED]

    def fit(delimiter: str) -> tuple[float, float]:
        records = list(_delimited(sample, delimiter))
        widths = Counter(
            len(record.cells) for record in records if not isinstance(record, _Unclosed)
        )
        any_widths = Counter(len(record.cells) for record in records)
        return most(widths) / len(records), most(any_widths) / len(records)

    def most(widths: Counter[int]) -> int:
        return max((times for n, times in widths.items() if n > 1), default=0)

    return max(_DELIMITERS, key=fit)  # the first of equals


def _delimited(
    lines: Sequence[str], delimiter: str, *, is_quoted: bool = False
) -> Iterator[FileRecord]:
    """Yield every line, in a record or alone where its quotes are wrong; blank ones, too."""
    if delimiter == "\t" and not is_quoted:
        for line, text in enumerate(lines, 1):
            yield FileRecord(line, 1, tuple(text.split("\t")))
        return
    at = 0
    while at < len(lines):
        if '"' not in lines[at]:
            yield FileRecord(at + 1, 1, tuple(lines[at].split(delimiter)))
            at += 1
            continue
        record = _quoted(lines, at, delimiter)
        if record is None:
            yield _Unclosed(at + 1, 1, _literal(lines[at], delimiter))
            at += 1
        else:
            yield record
            at += record.n_lines


def _quoted(lines: Sequence[str], at: int, delimiter: str) -> FileRecord | None:
    """Return the record that starts on a line, None where its quotes do not fit RFC 4180."""
    rest = (f"{lines[number]}\n" for number in range(at, len(lines)))
    reader = csv.reader(rest, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        cells = tuple(next(reader))
    except csv.Error:
        return None
    n_lines = reader.line_num
    if n_lines >= _MIN_ROWS_IN_QUOTES:
        inside = lines[at : at + n_lines]
        n_rows = sum(len(_literal(line, delimiter)) == len(cells) for line in inside)
        if len(cells) > 1 and n_rows >= 0.8 * n_lines:
            return None  # a missing quote, and rows up to the next one
    return FileRecord(at + 1, n_lines, cells)


def _literal(line: str, delimiter: str) -> Cells:
    """Return the cells of one line; a quote that is not closed before a delimiter is text."""
    if len(line) > csv.field_size_limit():
        return (line,)  # no row of short texts, and slow to take apart
    sign = re.escape(delimiter)
    cell = re.compile(rf'\s*"((?:[^"]|"")*)"\s*(?={sign}|$)|([^{sign}]*)')
    cells, at = [], 0
    while True:
        match = cell.match(line, at)
        assert match is not None, "the second form matches anything"
        quoted, plain = match.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end() + 1
        if at > len(line):
            return tuple(cells)


# JSON


def _json_values(text: str) -> list[object] | None:
    """Return the entries of a JSON list, None where the text is not one. Raises BadData."""
    start = text.lstrip()[:1]
    if not start or start not in "[{":
        return None
    try:
        value = json_of(text)
    except Unreadable as error:
        raise BadData("This JSON cannot be read: {why}.", why=error.sentence) from None
    except ValueError as error:
        if _LIST.match(text) and _parsed(text.lstrip().split("\n", 1)[0]) is None:
            raise BadData(
                "Invalid JSON on line {line}: {what}. Correct it, or save one record per line.",
                line=getattr(error, "lineno", 1),
                what=getattr(error, "msg", str(error)),
            ) from None
        return None
    if chats.messages_of(value):
        return [value]
    if isinstance(value, dict):
        lists = {name: one for name, one in value.items() if _is_list_of_records(one)}
        if len(lists) > 1:
            raise BadData(
                "This JSON holds several lists: {names}. Save one of them.",
                names=", ".join(lists)[:200],
            )
        return next(iter(lists.values())) if lists else None
    return value if _is_list_of_records(value) else None


_LIST = re.compile(r"\s*(?:[\[{]\s*\n|\[\s*[\[{])")  # how a list over several lines begins


def _is_list_of_records(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value)


def _is_json_lines(lines: Sequence[str]) -> bool:
    """Return whether at least half of the first lines with text are a JSON object or list."""
    sample = [line for line in lines[:_N_SAMPLED] if line.strip()]
    return sum(_parsed(line) is not None for line in sample) >= 0.5 * len(sample)


def _parsed(line: str) -> dict[str, object] | list[object] | None:
    try:
        value = json_of(line)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


_NOT_JSON = N_("{place} is not JSON. Write one object or list per line.")
_NOT_A_RECORD = N_("{place} needs two texts.")
_ALONE = N_("{place}: a message without an answer, or an answer without a message.")
INSTRUCTION = "instruction + input"
"""A column that joins two of Alpaca's."""


def of_values(
    values: Sequence[object], *, numbered: str, width: int = 0, wrong: str = _NOT_A_RECORD
) -> Records:
    """Return the records of objects by name, of lists by place, or of chats; "" is a blank line.

    wrong: why another value is none.
    """
    every = [chats.messages_of(value) for value in values]
    is_chat = any(every)
    objects = [_flat(value) if isinstance(value, dict) else None for value in values]
    names = tuple(dict.fromkeys(name for flat in objects if flat is not None for name in flat))
    notes: list[str] = []
    if is_chat:
        names = chats.COLUMNS
    elif "input" not in names:
        names = tuple(name for name in names if name != INSTRUCTION)
    elif INSTRUCTION in names:
        notes.append(N_("“{name}” joins two columns; you can choose one.", name=INSTRUCTION))
    others: Counter[str] = Counter()
    records: list[FileRecord] = []
    for line, (value, flat, messages) in enumerate(zip(values, objects, every, strict=True), 1):
        if messages:
            pairs = chats.exchanges(messages, others)
            records += [_exchange(line, tuple(map(_cell, pair))) for pair in pairs]
            check_number(len(records))
        elif flat is not None:
            records.append(FileRecord(line, 1, tuple(_cell(flat.get(name, "")) for name in names)))
        elif isinstance(value, list) and not names:
            records.append(FileRecord(line, 1, tuple(map(_cell, value))))
        elif value == "":
            records.append(FileRecord(line, 1, ("",)))
        else:
            records.append(_Unreadable(line, 1, (), wrong if value is None else _NOT_A_RECORD))
    if is_chat:
        notes += chats.notes_on(sum(map(bool, every)), others)
    found = of_one_width(records, numbered, len(names) or width, None)
    return replace(found, names=names, notes=tuple(notes), is_chat=is_chat)


def _exchange(line: int, cells: Cells) -> FileRecord:
    return FileRecord(line, 1, cells) if cells else _Unreadable(line, 1, (), _ALONE)


def _flat(value: dict[str, object]) -> dict[str, object]:
    """Return an object with the names of an object inside behind a dot: ``translation.en``."""
    flat: dict[str, object] = {}
    for name, entry in value.items():
        if isinstance(entry, dict):
            flat |= {f"{name}.{inner}": part for inner, part in entry.items()}
        else:
            flat[name] = entry
    if "instruction" in flat:
        parts = [_cell(flat.get(name, "")) or "" for name in ("instruction", "input")]
        flat = {INSTRUCTION: " ".join(parts), **flat}
    return {name.encode(errors="replace").decode(): entry for name, entry in flat.items()}


def _cell(value: object) -> str | None:
    """Return a value of JSON as text; a whole number has no fraction, None is not a text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if not isinstance(value, str | int | float):
        return None
    text = str(value)
    return text if is_text(text, len(text)) else None  # escapes of JSON may be half a character
