"""Pasted text and files as rows of two columns: tabs, commas, semicolons, or JSON lines.

What is wrong is said with the number of its line and left out; the rest is taken. Nothing is
guessed about an encoding: a file says it with a byte order mark, or it is UTF-8.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfm_core.reading import is_text
from tfm_core.sentences import N_, StudentError

MOST_BYTES = 32 * 2**20
"""Of what is pasted or uploaded."""
MOST_ROWS = 200_000
MOST_LINE = 4_000
"""Characters of one text."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DELIMITERS = ("\t", ";", ",", "|")
_LOOKED_AT = 200  # lines by which the delimiter is told
_MOST_QUOTED = 50  # lines that one quoted text may take
_FIRST = {"source", "src", "input", "from", "text", "sentence", "question", "english", "en", "x"}
_SECOND = {
    "target", "tgt", "output", "to", "label", "class", "category", "answer", "translation",
    "sentiment", "y",
}  # fmt: skip


class BadData(StudentError):
    """What was pasted or uploaded cannot be taken at all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in one line, which is left out. line: counted from 1, None for the whole."""

    line: int | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Row:
    """Two texts, without line breaks or spaces around them, and the line that they stand in."""

    line: int
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and what was wrong with the others. columns: as a header names them, or ()."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    columns: tuple[str, ...]


def decoded(raw: bytes | str) -> str:
    """Return a text with all its line ends alike. Raises BadData, with the number of the line."""
    if len(raw) > MOST_BYTES:
        raise BadData(
            "This has {size:,} bytes, but at most {most:,} can be taken; leave some of it out.",
            size=len(raw),
            most=MOST_BYTES,
        )
    text = raw if isinstance(raw, str) else _decoded(raw)
    if "\0" in text:
        raise BadData(
            "Line {line} holds a zero byte, which no text has: this is a file of another kind, or "
            "in UTF-16 without its mark. Save it as text in UTF-8.",
            line=text[: text.index("\0")].count("\n") + 1,
        )
    if not is_text(text, len(text)):
        raise BadData("This holds half a character, which no alphabet has; save it as UTF-8.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def table(text: str) -> Table:
    """Return the rows of a text. Raises BadData where it is no table of two columns at all."""
    if not text.strip():
        raise BadData("There is nothing here yet: paste lines, or choose a file.")
    start = text.lstrip()[:1]
    read = _json_rows(text) if start in "{[" else _delimited_rows(text, delimiter_of(text))
    rows: list[Row] = []
    problems: list[Problem] = []
    columns: tuple[str, ...] = ()
    for line, found in read:
        if isinstance(found, str):
            problems.append(Problem(line, found))
        elif not rows and not columns and not problems and _is_header(found):
            columns = found
        else:
            one = _row(line, found)
            (rows if isinstance(one, Row) else problems).append(one)  # type: ignore[arg-type]
        if len(rows) > MOST_ROWS:
            raise BadData(
                "This has more than {most:,} lines, which is more than can be learned from here; "
                "leave some of them out.",
                most=MOST_ROWS,
            )
    if not rows:
        raise BadData(
            "No line has two texts. Write one pair a line, with a tab or a comma between the two: "
            "“good morning, guten Morgen”; or JSON lines. {why}",
            why=problems[0].sentence if problems else "",
        )
    return Table(tuple(rows), tuple(problems), columns)


def delimiter_of(text: str) -> str:
    """Return the sign that most often cuts a line in two: a tab, a semicolon, a comma or a bar."""
    lines = [line for line in text.split("\n", _LOOKED_AT)[:_LOOKED_AT] if line.strip()]

    def fits(delimiter: str) -> tuple[int, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        return sum(n == 2 for n in counts), sum(n > 1 for n in counts)

    try:
        return max(_DELIMITERS, key=fits)  # the first of equals
    except csv.Error:
        return "\t" if "\t" in text else ","


def _decoded(raw: bytes) -> str:
    encoding = next((name for mark, name in _MARKS if raw.startswith(mark)), "utf-8")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadData(
            "Line {line} is not {encoding}: the byte {byte} there begins no character. Save the "
            "file as UTF-8 (spreadsheets call it “CSV UTF-8”) and choose it again.",
            line=line,
            encoding=encoding.removesuffix("-sig").upper(),
            byte=f"0x{raw[error.start]:02X}",
        ) from None


def _delimited_rows(text: str, delimiter: str) -> Iterator[tuple[int, tuple[str, ...] | str]]:
    """Yield each row, or what is wrong with it, and the number of its first line."""
    reader = csv.reader(text.split("\n"), delimiter=delimiter)
    last = 0
    while True:
        first = last + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a text of more than 131,072 characters: a quote that never ends
            yield first, _unclosed(first)
            return
        last = reader.line_num
        if last - first >= _MOST_QUOTED:
            yield first, _unclosed(first)
            return
        if any(cell.strip() for cell in row):
            yield first, tuple(row)


def _unclosed(line: int) -> str:
    return N_(
        "Line {line} opens a quote that is not closed in the next {most} lines, so nothing behind "
        "it could be read. Close it, or write the quote twice.",
        line=line,
        most=_MOST_QUOTED,
    )


def _json_rows(text: str) -> Iterator[tuple[int, tuple[str, ...] | str]]:
    """Yield the two texts of each line of JSON: an object of two, or a list of two."""
    names: tuple[str, ...] | None = None
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            values = json.loads(written)
        except (ValueError, RecursionError):
            yield (
                line,
                N_(
                    "Line {line} is not JSON. Write one object or list a line, such as {example}.",
                    line=line,
                    example='{"source": "good morning", "target": "guten Morgen"}',
                ),
            )
            continue
        if isinstance(values, dict) and len(values) == 1:  # {"translation": {"en": …, "de": …}}
            values = next(iter(values.values()))
        if isinstance(values, dict):
            names = names or _chosen(tuple(values))
            values = [values.get(name) for name in names]
        if not isinstance(values, list) or not all(isinstance(one, str | int) for one in values):
            yield line, N_("Line {line} does not hold two texts.", line=line)
            continue
        yield line, tuple(str(one) for one in values)


def _chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the two columns that are meant, of those that an object has."""
    first = [name for name in names if name.lower() in _FIRST]
    second = [name for name in names if name.lower() in _SECOND]
    return (first[0], second[0]) if first and second else tuple(names)


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell.strip().lower() for cell in cells]
    return len(names) == 2 and (
        (names[0] in _FIRST and names[1] in _SECOND | _FIRST)
        or (names[0] in _SECOND and names[1] in _FIRST)
    )


def _row(line: int, cells: Sequence[str]) -> Row | Problem:
    if len(cells) != 2:
        return Problem(
            line,
            N_(
                "Line {line} has {n} columns, but must have 2; put quotes around a text that holds "
                "the sign between the columns.",
                line=line,
                n=len(cells),
            )
            if len(cells) > 1
            else N_("Line {line} has 1 column, but must have 2.", line=line),
        )
    first, second = (" ".join(cell.split()) for cell in cells)
    if not first or not second:
        return Problem(line, N_("Line {line} has an empty text.", line=line))
    if max(len(first), len(second)) > MOST_LINE:
        return Problem(
            line,
            N_(
                "Line {line} has a text of {n:,} characters, but it may have {most:,}.",
                line=line,
                n=max(len(first), len(second)),
                most=MOST_LINE,
            ),
        )
    return Row(line, first, second)


def twice(rows: Sequence[Row]) -> int:
    """Return how many rows say what an earlier one says."""
    return sum(n - 1 for n in Counter((row.first, row.second) for row in rows).values())
