"""The rows of a text file: every column of every row, whatever the format.

Tab-separated text is literal: a line is a row, and quotation marks are text. Commas, semicolons
and bars follow RFC 4180, where a quoted text may hold the delimiter and span lines, and so do notes
of Anki, whose first lines are settings (https://docs.ankiweb.net/importing/text-files.html). JSON
is a list of records, or one record a line. A chat has a row for each answer: a message has a role
and a content (OpenAI, Hugging Face), or from and value (ShareGPT).
"""

from __future__ import annotations

import csv
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, takewhile

from tfm_core.data.user_data.uploads import (
    Accounting,
    BadData,
    Item,
    check,
    kept,
    n_lines,
    read_each,
    skipped,
)
from tfm_core.reading import Unreadable, is_text, json_of
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, counted

LINE, ENTRY = N_("Line {line}"), N_("Entry {line}")
TEST_LINE, TEST_ENTRY = N_("Line {line} of the test file"), N_("Entry {line} of the test file")
"""How a place in a file is called; a JSON list has entries, because it may stand on one line."""

_DELIMITERS = ("\t", ";", ",", "|")
_SEPARATOR = re.compile(rf"sep=([{''.join(_DELIMITERS)}])")  # a first line that Excel writes
_N_SAMPLED = 200  # lines from which the format is guessed
_MIN_ROWS_IN_QUOTES = 3
"""Lines of a quoted text, most of which look like rows of the table, that mean a missing quote."""

_ANKI_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "colon": ":"}
_ANKI_COLUMNS = ("guid", "notetype", "deck", "tags")
_ANKI_SETTING = re.compile(
    r"#(separator|html|columns|tags|deck|notetype|if matches"
    rf"|(?:{'|'.join(_ANKI_COLUMNS)}) column):(.*)"
)
_BREAK = re.compile(r"</?(?:br|div|p|li|ul|ol|tr|td|h\d)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)

Cells = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """All that a file holds. Its lines are in records or problems, blank, or of its header."""

    records: tuple[Item, ...]  # with all cells as contents; a cell that is no text is None
    problems: tuple[Item, ...]  # that are skipped
    width: int  # columns of each record
    accounting: Accounting  # of every line; none of the records is kept yet
    numbered: str  # how a place is called
    names: tuple[str, ...] = ()  # of the columns, where the format has them
    notes: tuple[str, ...] = ()  # on how the file was read
    encoding: str = "utf-8"


def read_records(text: str, *, is_test: bool = False, width: int = 0) -> Records:
    """Return the records of a text. Raises BadData where it has no two columns.

    width: columns that the records should have, where some have as many; otherwise the most common
    number of at least 2 is taken. Records with another number are problems.
    """
    if not text.strip():
        raise BadData("Paste some lines or choose a file.")
    entries = _json_values(text)
    if entries is not None:
        check("rows", len(entries) - 1)
        entries = [entry if isinstance(entry, dict | list) else None for entry in entries]
        return records_of(entries, numbered=TEST_ENTRY if is_test else ENTRY, width=width)
    numbered = TEST_LINE if is_test else LINE
    check("rows", text.count("\n") // 10 - 1)
    lines = text.removesuffix("\n").split("\n")
    # JSON a line, where at least half of the first lines with text are an object or a list
    sample = [line for line in lines[:_N_SAMPLED] if line.strip()]
    if sum(_parsed(line) is not None for line in sample) >= 0.5 * len(sample):
        check("rows", sum(not line.isspace() for line in lines if line) - 1)
        values = [_parsed(line) if line.strip() else "" for line in lines]
        return records_of(values, numbered=numbered, width=width, wrong=_NOT_JSON)
    return _of_lines(lines, numbered, width)


def _of_one_width(
    candidates: Iterable[Item], numbered: str, width: int, delimiter: str | None
) -> Records:
    """Return the records of one width; the others become problems. delimiter: None of JSON."""
    filled: list[Item] = []
    total = 0
    for row in candidates:
        total += row.n_lines
        # in JSON a line must be empty, not only its texts
        if not _is_empty(row.content) or (delimiter is None and len(row.content) != 1):
            filled.append(row)
            check("rows", len(filled) - 1)
    widths = Counter(len(row.content) for row in kept(filled))
    if width < 2 or not widths[width]:
        width = max(widths.keys() - {0, 1}, key=lambda n: (widths[n], -n), default=2)

    def read(row: Item) -> Item:
        if len(row.content) > width and _is_empty(row.content[width:]):
            row = replace(row, content=row.content[:width])
        if len(row.content) != width:
            raise StudentError(_why(row, width, delimiter))
        return row

    rows = read_each(filled, read)
    records, problems = tuple(kept(rows)), tuple(skipped(rows))
    if not records:
        raise BadData(Paragraph("own-data/no-pairs", why=problems[0].why if problems else ""))
    counted = "entries" if numbered in {ENTRY, TEST_ENTRY} else "lines"
    accounting = Accounting(total, blank=total - n_lines(filled), counted=counted)
    unclosed = [str(row.line) for row in records if row.is_unclosed]
    note = N_(
        "Unclosed quotation marks read as text: {n:,}, on lines {lines}.",
        n=len(unclosed),
        lines=", ".join(unclosed[:10]) + (" …" if len(unclosed) > 10 else ""),
    )
    notes = (note,) if unclosed else ()
    return Records(records, problems, width, accounting, numbered, notes=notes)


def _is_empty(cells: Cells) -> bool:
    return all(cell is not None and not cell.strip() for cell in cells)


def _why(row: Item, width: int, delimiter: str | None) -> Sentence:
    """Return why a row does not have the columns of the others."""
    n, place = len(row.content), row.place
    if row.is_unclosed:
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


def _of_lines(lines: list[str], numbered: str, width: int) -> Records:
    """Return the records of text with a delimiter; the first lines may be settings of Anki."""
    matches = takewhile(bool, map(_ANKI_SETTING.fullmatch, lines))
    listed = [(match[1], match[2].strip()) for match in matches if match]
    settings = dict(listed)
    n_settings, named = len(listed), settings.get("separator", "")
    is_plain = named in _ANKI_SEPARATORS.values()
    delimiter = _ANKI_SEPARATORS.get(named.casefold(), named if is_plain else None)
    if separator := _SEPARATOR.fullmatch(lines[0]):
        n_settings, delimiter = 1, separator[1]
    lines[:n_settings] = [""] * n_settings
    delimiter = delimiter or _delimiter_of(lines)
    rows = _delimited(lines, delimiter, numbered, is_quoted=bool(settings))
    if ("html", "true") in listed:
        rows = (replace(row, content=tuple(map(_without_tags, row.content))) for row in rows)
    found = _of_one_width(rows, numbered, width, delimiter)
    blank = found.accounting.blank - n_settings
    found = replace(found, accounting=replace(found.accounting, blank=blank, header=n_settings))
    if not settings:
        return found
    words = ", ".join(f"{name}: {value}" for name, value in listed)[:200]
    note = N_("Read with Anki's settings: {settings}.", settings=words)
    names = settings.get("columns", "").split(delimiter)
    if len(names) != found.width:
        names = [""] * found.width
    special = {settings.get(f"{name} column"): name for name in _ANKI_COLUMNS}
    names = [name or special.get(str(at), "") for at, name in enumerate(names, 1)]
    return replace(found, names=tuple(names) if any(names) else (), notes=(note, *found.notes))


def _without_tags(cell: str | None) -> str | None:
    """Return a cell of HTML as plain text."""
    return None if cell is None else html.unescape(_TAG.sub("", _BREAK.sub(" ", cell)))


def _delimiter_of(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts most lines into the same number of columns, two or more."""
    sample = lines[:_N_SAMPLED]

    def fit(delimiter: str) -> tuple[float, float]:
        rows = list(_delimited(sample, delimiter))
        widths = Counter(len(row.content) for row in rows if not row.is_unclosed)
        any_widths = Counter(len(row.content) for row in rows)
        # rows whose quotes fit count first; a delimiter inside quotes leaves many that do not
        return most(widths) / len(rows), most(any_widths) / len(rows)

    def most(widths: Counter[int]) -> int:
        return max((times for n, times in widths.items() if n > 1), default=0)

    return max(_DELIMITERS, key=fit)  # the first of equals


def _delimited(
    lines: Sequence[str], delimiter: str, numbered: str = LINE, *, is_quoted: bool = False
) -> Iterator[Item]:
    """Yield every line, in a row or alone where its quotes are wrong; blank ones, too."""
    is_literal = delimiter == "\t" and not is_quoted
    at = 0
    while at < len(lines):
        is_plain = is_literal or '"' not in lines[at]
        cells, n = (None, 1) if is_plain else _quoted(lines, at, delimiter)
        is_unclosed = not is_plain and cells is None
        if cells is None:
            cells = _literal(lines[at], delimiter) if is_unclosed else lines[at].split(delimiter)
        yield Item(tuple(cells), line=at + 1, n_lines=n, numbered=numbered, is_unclosed=is_unclosed)
        at += n


def _quoted(lines: Sequence[str], at: int, delimiter: str) -> tuple[Sequence[str] | None, int]:
    """Return the cells that start on a line, and how many lines they span.

    None and 1 where quotes do not fit RFC 4180.
    """
    rest = (f"{lines[number]}\n" for number in range(at, len(lines)))
    reader = csv.reader(rest, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        cells = next(reader)
    except csv.Error:
        return None, 1
    if reader.line_num >= _MIN_ROWS_IN_QUOTES:
        inside = lines[at : at + reader.line_num]
        n_rows = sum(len(_literal(line, delimiter)) == len(cells) for line in inside)
        if len(cells) > 1 and n_rows >= 0.8 * reader.line_num:
            return None, 1  # a missing quote, and rows up to the next one
    return cells, reader.line_num


def _literal(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line; a quote that is not closed before a delimiter is text."""
    if len(line) > csv.field_size_limit():
        return [line]  # no row of short texts, and slow to take apart
    sign = re.escape(delimiter)
    cell = re.compile(rf'\s*"((?:[^"]|"")*)"\s*(?={sign}|$)|([^{sign}]*)')
    cells: list[str] = []
    at = 0
    while True:
        match = cell.match(line, at)
        assert match is not None, "the second form matches anything"
        quoted, plain = match.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end() + 1
        if at > len(line):
            return cells


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
    if _messages_of(value):
        return [value]
    if isinstance(value, dict):
        lists = {name: entry for name, entry in value.items() if _is_list_of_records(entry)}
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


def _parsed(line: str) -> dict[str, object] | list[object] | None:
    try:
        value = json_of(line)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


_NOT_JSON = N_("{place} is not JSON. Write one object or list per line.")
NOT_TWO_TEXTS = N_("{place} needs two texts.")
_ALONE = N_("{place} has a message without an answer, or an answer without a message.")
INSTRUCTION = "instruction + input"
"""A column that joins two of Alpaca's."""


def records_of(
    values: Sequence[object], *, numbered: str, width: int = 0, wrong: str = NOT_TWO_TEXTS
) -> Records:
    """Return the records of objects by name, of lists by place, or of chats; "" is a blank line.

    wrong: why another value is none.
    """
    every = [_messages_of(value) for value in values]
    objects = [_flat(value) if isinstance(value, dict) else None for value in values]
    names = tuple(dict.fromkeys(name for flat in objects if flat is not None for name in flat))
    is_chat = any(every)
    notes: list[str] = []
    counted = ""
    # other objects among chats have none of these columns, and are listed as empty
    if is_chat:
        names = ("prompt", "response")
        notes += _chat_notes(every)
        counted = "answers"
    elif {"input", INSTRUCTION} <= set(names):
        notes.append(
            N_("“{name}” joins two columns; you can also choose one of them.", name=INSTRUCTION)
        )
    else:
        names = tuple(name for name in names if name != INSTRUCTION)

    def row(line: int, cells: Iterable[object], template: str = "") -> Item:
        why = N_(template, place=N_(numbered, line=line)) if template else ""
        return Item(tuple(map(_cell, cells)), line=line, numbered=numbered, why=why)

    def rows_of(
        line: int, value: object, flat: Mapping[str, object] | None, messages: Sequence[Message]
    ) -> Iterator[Item]:
        if messages:
            for pair in _exchanges(messages):
                yield row(line, pair, "" if pair else _ALONE)
        elif flat is not None:
            yield row(line, [flat.get(name, "") for name in names])
        elif isinstance(value, list) and not names:
            yield row(line, value)
        elif value == "":
            yield row(line, [""])
        else:
            yield row(line, [], wrong if value is None else NOT_TWO_TEXTS)

    rows = chain.from_iterable(map(rows_of, count(1), values, objects, every))
    found = _of_one_width(rows, numbered, len(names) or width, None)
    accounting = replace(found.accounting, counted=counted or found.accounting.counted)
    return replace(found, names=names, notes=tuple(notes), accounting=accounting)


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


# Chats

_CHATS = ("messages", "conversations", "conversation")
_USERS = {"user", "human", "prompter"}
_ASSISTANTS = {"assistant", "gpt", "chatgpt", "bot", "model"}

Message = tuple[str, object]
"""A role and a text."""


def _messages_of(value: object) -> list[Message]:
    """Return the messages of a chat, none where a value is no chat."""
    for key in _CHATS:
        messages = value.get(key) if isinstance(value, dict) else None
        if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
            roles = [one.get("role", one.get("from")) for one in messages]
            if all(isinstance(role, str) for role in roles):
                texts = [one.get("content", one.get("value")) for one in messages]
                return list(zip(roles, texts, strict=True))
    return []


def _exchanges(messages: Sequence[Message]) -> Iterator[Sequence[object]]:
    """Yield each message with its answer, () for one alone; those of other roles are skipped."""
    known = [message for message in messages if message[0] in _USERS | _ASSISTANTS]
    at = 0
    while at < max(1, len(known)):
        pair = known[at : at + 2]
        is_pair = len(pair) == 2 and pair[0][0] in _USERS and pair[1][0] in _ASSISTANTS
        yield [text for _role, text in pair] if is_pair else ()
        at += 1 + is_pair


def _chat_notes(every: Iterable[Sequence[Message]]) -> Iterator[Sentence]:
    """Yield notes on how chats were read."""
    chats = [messages for messages in every if messages]
    yield counted(
        "{n:,} chat read as pairs: the user's message, the assistant's answer.",
        "{n:,} chats read as pairs: the user's message, the assistant's answer.",
        len(chats),
    )
    others = Counter(role for messages in chats for role, _text in messages)
    others = Counter({role: n for role, n in others.items() if role not in _USERS | _ASSISTANTS})
    if others:
        roles = ", ".join(f"{role[:40]} ({n:,})" for role, n in others.most_common(5))
        yield N_("Messages with other roles skipped: {roles}.", roles=roles)
