"""Text files as rows: decoded, cut to the two columns in use, normalised to Unicode NFC.

Every line ends up in a row, in a problem with its number, or in a count of blank lines. A byte
order mark names the encoding, else it is UTF-8, else chosen or guessed, which is said. A keyboard
types NFC (UAX #15); files from macOS and PDFs often hold NFD, whose letters look the same and are
other tokens.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tfm_core.data.own.encodings import TEXT_ENCODINGS, encoding_of_text
from tfm_core.data.own.layout import ColumnLayout
from tfm_core.data.own.records import LINE, BadData, FileRecord, LineProblem, Records
from tfm_core.reading import is_text
from tfm_core.sentences import N_, Paragraph, Sentence
from tfm_core.variants.units import HIDDEN, normalised

MAX_BYTES = 32 * 2**20
"""Of what is pasted or uploaded."""
MAX_LINE = 4_000
"""Characters of one text."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class TextRow:
    """Two texts, without line breaks or surrounding spaces, and the line on which they start.

    n_lines: how many lines they take up. numbered: how the line is named, see ``records.LINE``.
    is_cut: whether a text is the beginning of a longer one.
    """

    line: int
    first: str
    second: str
    n_lines: int = 1
    numbered: str = LINE
    is_cut: bool = False

    def problem(self, sentence: str) -> LineProblem:
        """Return a problem of this row."""
        return LineProblem(self.line, sentence, self.n_lines, self.numbered)

    @property
    def place(self) -> Sentence:
        """The line, in words."""
        return N_(self.numbered, line=self.line)


@dataclass(frozen=True, slots=True)
class Accounting:
    """Where the lines of a file ended up; they add up to ``total``.

    kept: lines of the rows that a set holds. left_out: of rows with a problem. repeated: of
    duplicate rows. blank: without any text. header: of the names of columns, or on the format.
    What is counted may be entries of a JSON list, or answers in chats.
    """

    total: int = 0
    kept: int = 0
    left_out: int = 0
    repeated: int = 0
    blank: int = 0
    header: int = 0
    in_entries: bool = False
    in_answers: bool = False

    @property
    def share_left_out(self) -> float:
        """The share of the lines with content that have a problem."""
        return self.left_out / max(1, self.total - self.blank - self.header)


def decoded(raw: bytes | str, encoding: str | None = None) -> tuple[str, str]:
    """Return a text with all its line ends alike, and its encoding.

    encoding: of a text that is not UTF-8, a key of ``TEXT_ENCODINGS``; guessed without one. Raises
    BadData, with the number of the line.
    """
    if len(raw) > MAX_BYTES:
        raise BadData(
            "This has {size:,} bytes; the limit is {most:,}.", size=len(raw), most=MAX_BYTES
        )
    text, used = (raw, "utf-8") if isinstance(raw, str) else _decoded(raw, encoding)
    if "\0" in text:
        raise BadData(
            "Line {line} has a zero byte, so this is not a UTF-8 text. Save it as UTF-8.",
            line=text[: text.index("\0")].count("\n") + 1,
        )
    if not is_text(text, len(text)):
        raise BadData("This has an invalid character. Save it as UTF-8.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), used


def rows_of(
    records: Records, layout: ColumnLayout, *, is_cut: bool = False
) -> tuple[list[TextRow], list[LineProblem]]:
    """Return the rows in the two chosen columns, cut where long, and problems of the others."""
    rows: list[TextRow] = []
    problems = list(records.problems)
    for record in records.records[layout.has_header :]:
        row = _row(record, layout, records.numbered, is_cut=is_cut)
        (rows if isinstance(row, TextRow) else problems).append(row)  # type: ignore[arg-type]
    return rows, sorted(problems, key=lambda row: row.line or 0)


_KINDS = (
    (re.compile(rb"PK\x03\x04(?=.*xl/workbook)", re.DOTALL), N_("a workbook")),
    (re.compile(rb"PK\x03\x04"), N_("a zip archive")),
    (re.compile(rb"\x1f\x8b"), N_("a gzip archive")),
    (re.compile(rb"\xd0\xcf\x11\xe0"), N_("a file of an old Office")),
    (re.compile(rb"PAR1"), N_("a Parquet table")),
    (re.compile(rb"%PDF-"), N_("a PDF")),
    (re.compile(rb"\{\\rtf"), N_("a formatted text (RTF)")),
    (re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE), N_("a web page")),
    (re.compile(rb"version https://git-lfs"), N_("a pointer of Git LFS")),
)


def _decoded(raw: bytes, encoding: str | None) -> tuple[str, str]:
    if kind := next((kind for beginning, kind in _KINDS if beginning.match(raw)), None):
        raise BadData(Paragraph("own-data/no-text", kind=kind))
    declared = next((name for mark, name in _MARKS if raw.startswith(mark)), None)
    used = declared or encoding_of_text(raw, encoding)
    try:
        return raw.decode(used), used.removesuffix("-sig")
    except UnicodeDecodeError as error:
        at = error.start
    refusal = BadData(
        Paragraph(
            "own-data/encoding",
            line=raw[:at].count(b"\n") + 1,
            encoding=TEXT_ENCODINGS.get(used, used.removesuffix("-sig").upper()),
            byte=f"0x{raw[at]:02X}",
        )
    )
    if declared is None:
        refusal.encoding = used if used in TEXT_ENCODINGS else ""
    raise refusal


def _row(
    record: FileRecord, layout: ColumnLayout, numbered: str, *, is_cut: bool
) -> TextRow | LineProblem:
    first, second = (record.cells[column] for column in (layout.first, layout.second))
    first, second = _one_line(first), _one_line(second)
    row = TextRow(record.line, first or "", second or "", record.n_lines, numbered)
    if first is None or second is None:
        return row.problem(N_("{place} needs two texts.", place=row.place))
    if not first or not second:
        return row.problem(N_("{place} has an empty text.", place=row.place))
    longest = max(len(first), len(second))
    if longest > MAX_LINE and is_cut:
        row = replace(row, first=first[:MAX_LINE], second=second[:MAX_LINE], is_cut=True)
    elif longest > MAX_LINE:
        return row.problem(
            N_(
                "{place} has a text of {n:,} characters; the limit is {most:,}.",
                place=row.place,
                n=longest,
                most=MAX_LINE,
            )
        )
    if "\0" in first + second:
        return row.problem(N_("{place} has a zero byte.", place=row.place))
    return row


def _one_line(cell: str | None) -> str | None:
    return None if cell is None else " ".join(cell.split())


_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MAX_LISTED = 10
"""Numbers of lines that one note lists."""


class NormalisationLog:
    """What normalising changed, line by line."""

    def __init__(self) -> None:
        """Begin with nothing changed."""
        self._composed: set[int] = set()
        self._n_hidden: Counter[str] = Counter()
        self._lines: dict[str, dict[int, None]] = defaultdict(dict)

    def text(self, text: str, line: int) -> str:
        """Return a text normalised; line: where it stands."""
        if text.isascii():
            return text
        for sign in HIDDEN.findall(text):
            self._n_hidden[sign] += 1
            self._lines[sign][line] = None
        if not unicodedata.is_normalized("NFC", text):
            self._composed.add(line)
        return normalised(text)

    def notes(self) -> Iterator[str]:
        """Yield notes on the changes."""
        if self._composed:
            yield N_("{n:,} lines were normalised to Unicode NFC.", n=len(self._composed))
        for sign, n in sorted(self._n_hidden.items()):
            lines = list(self._lines[sign])
            listed = ", ".join(map(str, lines[:_MAX_LISTED]))
            yield N_(
                "Removed {n:,} invisible characters U+{code} ({name}) on lines {lines}.",
                code=f"{ord(sign):04X}",
                name=unicodedata.name(sign, "unnamed").lower(),
                n=n,
                lines=listed + (", …" if len(lines) > _MAX_LISTED else ""),
            )


def normalised_rows(rows: Iterable[TextRow]) -> tuple[list[TextRow], list[LineProblem], list[str]]:
    """Return normalised rows, problems of rows that became empty, and notes on the changes."""
    changes = NormalisationLog()
    result: list[TextRow] = []
    problems: list[LineProblem] = []
    n_breaks = 0
    for row in rows:
        texts = [_BREAK.subn(" ", text) for text in (row.first, row.second)]
        n_breaks += sum(n for _text, n in texts)
        first, second = (" ".join(changes.text(text, row.line).split()) for text, _n in texts)
        if first and second:
            result.append(replace(row, first=first, second=second))
        else:
            problems.append(row.problem(N_("{place} has an empty text.", place=row.place)))
    notes = list(changes.notes())
    if n_breaks:
        notes.append(N_("HTML line breaks read as spaces: {n:,}.", n=n_breaks))
    return result, problems, notes


def normalised_text(text: str) -> tuple[str, list[str]]:
    """Return a normalised text, and notes on the changes."""
    if text.isascii():
        return text, []
    changes = NormalisationLog()
    lines = [changes.text(line, number) for number, line in enumerate(text.split("\n"), 1)]
    return "\n".join(lines), list(changes.notes())
