"""Uploads of texts, clean and bounded: one file, two that match by line, or a zip of either.

Parallel texts come as a file a language, line by line (Moses, OPUS): ``train.en`` and ``train.ko``.
A byte order mark names the encoding, else it is UTF-8, else chosen or guessed, which is reported. A
keyboard types NFC (UAX #15); files from macOS and PDFs often hold NFD, whose letters look the same
and are other tokens.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath

from tfm_core.choices.config.corpus_tasks import text_problem
from tfm_core.choices.variants.tasks import HIDDEN, normalised
from tfm_core.data.user_data import records
from tfm_core.data.user_data.tokens import learn_from_text
from tfm_core.data.user_data.uploads import (
    LIMITS,
    TEXT_ENCODINGS,
    Accounting,
    BadData,
    ReadAs,
    Remark,
    Report,
    check,
    encoding_of_text,
    is_zip,
    open_zip,
    read_member,
    shown,
)
from tfm_core.reading import is_text
from tfm_core.sentences import N_, Paragraph, StudentError

Upload = bytes | str | Sequence[tuple[str, bytes]]
"""What is pasted, a file, or files with their names."""

_MAX_PACKED = 1_000
"""Files in a zip."""
_MAX_LISTED = 10
"""Numbers of lines that one note lists."""
_TABLE = re.compile(r"\.(csv|tsv|tab|jsonl?|ndjson)$", re.IGNORECASE)
_BESIDE = re.compile(
    r"(^|/)(\.|__MACOSX/|(readme|licen[cs]e)(\.\w+)?$)|/$|\.(xml|ids|scores)$", re.IGNORECASE
)
"""What is packed beside texts, by systems and by OPUS."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KINDS = (
    (re.compile(rb"PK\x03\x04(?=.*xl/workbook)", re.DOTALL), N_("a workbook")),
    (re.compile(rb"PK\x03\x04"), N_("a zip archive")),
    (re.compile(rb"\x1f\x8b"), N_("a gzip archive")),
    (re.compile(rb"\xd0\xcf\x11\xe0"), N_("an old Office file")),
    (re.compile(rb"PAR1"), N_("a Parquet table")),
    (re.compile(rb"%PDF-"), N_("a PDF")),
    (re.compile(rb"\{\\rtf"), N_("formatted text (RTF)")),
    (re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE), N_("a web page")),
    (re.compile(rb"version https://git-lfs"), N_("a Git LFS pointer")),
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read_upload(
    upload: Upload, *, encoding: str | None = None, is_test: bool = False, width: int = 0
) -> records.Records:
    """Return the records of an upload; see ``read_records`` and ``read_texts``. Raises BadData."""
    texts, used, notes = read_texts(upload, encoding, most=2)
    if len(texts) == 1:
        found = records.read_records(texts[0][1], is_test=is_test, width=width)
    else:
        found = _aligned(texts, records.TEST_LINE if is_test else records.LINE)
    return replace(found, encoding=used, notes=(*notes, *found.notes))


@contextmanager
def naming_test_file() -> Iterator[None]:
    """Say of what is refused that it is in the test file."""
    try:
        yield
    except BadData as error:
        error.sentence = N_("The test file: {why}", why=error.sentence)
        raise


def read_texts(
    upload: Upload, encoding: str | None, *, most: int
) -> tuple[list[tuple[str, str]], str, list[str]]:
    """Return up to ``most`` texts with their names, their encoding, and notes. Raises BadData.

    encoding: of texts that are not UTF-8, guessed without one.
    """
    files: list[tuple[str, bytes | str]] = [("", "")]
    if upload:
        files = [("", upload)] if isinstance(upload, bytes | str) else list(upload)
    notes: list[str] = []
    content = files[0][1]
    # a workbook is a zip, too, but not of texts
    is_packed = isinstance(content, bytes) and is_zip(content) and b"xl/workbook" not in content
    if len(files) == 1 and isinstance(content, bytes) and is_packed:
        files, notes = _unpacked(content, most)
    _check_names([name for name, _content in files], most)
    texts, used = [], "utf-8"
    for name, content in files:
        try:
            text, read_as = decoded(content, encoding)
        except BadData as error:
            if len(files) > 1:
                error.sentence = N_("{name}: {why}", name=shown(name), why=error.sentence)
            raise
        texts.append((shown(name), text))
        if read_as != "utf-8":
            used = read_as
            called = TEXT_ENCODINGS.get(used, used.upper())
            notes.append(N_("Not UTF-8: read as {encoding}.", encoding=called))
    return texts, used, notes


def _check_names(names: Sequence[str], most: int) -> None:
    # two tables are not lines that match; which of them would be the test is not guessed
    is_table = len(names) > 1 and any(map(_TABLE.search, names))
    if is_table or not 1 <= len(names) <= most:
        listed = ", ".join(map(shown, names[:5])) + (", …" if len(names) > 5 else "")
        raise BadData(Paragraph("own-data/files", n=len(names), names=listed or "–"))


def _unpacked(content: bytes, most: int) -> tuple[list[tuple[str, bytes | str]], list[str]]:
    """Return the texts in a zip, and a note on what is not read."""
    files: list[tuple[str, bytes | str]]
    try:
        with open_zip(content, N_("The zip"), _MAX_PACKED) as archive:
            entries = [entry for entry in archive.infolist() if not _BESIDE.search(entry.filename)]
            _check_names([entry.filename for entry in entries], most)
            files = [
                (entry.filename, read_member(archive, entry, LIMITS["bytes"].most))
                for entry in entries
            ]
            beside = sorted({*archive.namelist()} - {name for name, _content in files})
    except BadData:
        raise
    except StudentError as error:
        raise BadData("The zip cannot be read: {why}", why=error.sentence) from None
    return files, [N_("Not read: {names}.", names=shown(", ".join(beside)))] if beside else []


def _aligned(texts: Sequence[tuple[str, str]], numbered: str) -> records.Records:
    """Return a record for each line of two texts; columns are called as what files end in."""
    (first, first_text), (second, second_text) = texts
    lines = [text.removesuffix("\n").split("\n") for text in (first_text, second_text)]
    n, m = map(len, lines)
    if n != m:
        raise BadData(Paragraph("own-data/unequal", first=first, n=n, second=second, m=m))
    check("rows", n - 1)
    values = [list(pair) if "".join(pair).strip() else "" for pair in zip(*lines, strict=True)]
    paths = PurePath(first), PurePath(second)
    names = tuple(path.suffix[1:] for path in paths)
    if names[0] == names[1] or not all(names):
        names = tuple(path.stem for path in paths)
    note = N_("Read line by line: {first} and {second}.", first=first, second=second)
    return replace(records.records_of(values, numbered=numbered), names=names, notes=(note,))


def decoded(raw: bytes | str, encoding: str | None = None) -> tuple[str, str]:
    """Return a text with all its line ends alike, and its encoding.

    encoding: of a text that is not UTF-8, a key of ``TEXT_ENCODINGS``; guessed without one. Raises
    BadData, with the number of the line.
    """
    check("bytes", len(raw), size=len(raw))
    text, used = (raw, "utf-8") if isinstance(raw, str) else _decoded(raw, encoding)
    if "\0" in text:
        raise BadData(
            "Line {line} has a zero byte. Save the text as UTF-8.",
            line=text[: text.index("\0")].count("\n") + 1,
        )
    if not is_text(text, len(text)):
        raise BadData("The text has an invalid character. Save it as UTF-8.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), used


def _decoded(raw: bytes, encoding: str | None) -> tuple[str, str]:
    if kind := next((kind for beginning, kind in _KINDS if beginning.match(raw)), None):
        raise BadData(Paragraph("own-data/no-text", kind=kind))
    # a byte order mark leaves nothing to choose or to guess
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


class NormalisationLog:
    """What normalising changed, line by line."""

    def __init__(self) -> None:
        """Begin with nothing changed."""
        self._composed: set[int] = set()
        self._n_hidden: Counter[str] = Counter()
        self._lines: dict[str, dict[int, None]] = defaultdict(dict)
        self._n_breaks = 0

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

    def cell(self, text: str, line: int) -> str:
        """Return a cell normalised and in one line, without breaks of HTML."""
        text, n = _BREAK.subn(" ", text)
        self._n_breaks += n
        return " ".join(self.text(text, line).split())

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
        if self._n_breaks:
            yield N_("HTML line breaks read as spaces: {n:,}.", n=self._n_breaks)


MAX_TEXT = 2_000_000
"""Characters of a text."""
_N_PASSAGE = 40
"""Characters of a passage that hardly occurs twice by chance."""
_MAX_REPEATED = 0.2
"""Share of a test that may repeat passages of training before it is worth a note."""


def inspect_continued(
    report: Report, raw: Upload, test: Upload | None, encoding: str | None
) -> None:
    """Check a text and its test file, and fill a report. Raises BadData."""
    report.text, report.accounting, used, notes = _read_text(raw, encoding)
    report.read_as = ReadAs(used)
    _check(report.text, report.unit)
    cutter = learn_from_text(report.unit, report.text, has_test=test is not None)
    tokens = cutter.cut_text(report.text)
    n_held_out = max(2, len(tokens) // 10)
    n_train, n_test = len(tokens) - n_held_out, n_held_out
    if test is None:
        n_train -= n_held_out
        start = round(len(report.text) * (1 - n_held_out / len(tokens)))
        notes += _repeat_notes(report.text[:start], report.text[start:])
    else:
        with naming_test_file():
            tested, report.test_accounting, _encoding, changed = _read_text(test, encoding)
            _check(tested, report.unit)
        cut = cutter.cut_text(tested)
        notes += [N_("The test file: {why}", why=note) for note in changed]
        if tested in report.text or _joined(cut) in _joined(tokens):
            notes.append(
                N_("The text contains the whole test file, so the test score measures memory.")
            )
        else:
            notes += _repeat_notes(report.text, tested)
        known = set(tokens)
        if n_unknown := sum(token not in known for token in cut):
            words = N_(
                "Test tokens that are not in training: {n:,} of {all:,}. The model never learns "
                "them."
            )
            notes.append(N_(words, n=n_unknown, all=len(cut)))
        report.test, n_test = tested, len(cut)
    report.findings = tuple(Remark("warning", note) for note in notes)
    report.cutters = (cutter,)
    report.counts = {"train": n_train, "validation": n_held_out, "test": n_test}
    report.words = (cutter.text_vocabulary(*filter(None, (report.text, report.test))),)


def _check(text: str, unit: str) -> None:
    if problem := text_problem(text, unit, most=MAX_TEXT):
        raise BadData(problem)


def _read_text(upload: Upload, encoding: str | None) -> tuple[str, Accounting, str, list[str]]:
    """Return a text, what became of its lines, its encoding and notes. Raises BadData.

    Blank lines around it are left out.
    """
    ((_name, whole),), used, notes = read_texts(upload, encoding, most=1)
    text = whole.strip("\n")
    total, kept = (part.removesuffix("\n").count("\n") + 1 if part else 0 for part in (whole, text))
    if not text.isascii():
        changes = NormalisationLog()
        lines = [changes.text(line, number) for number, line in enumerate(text.split("\n"), 1)]
        text = "\n".join(lines)
        notes += changes.notes()
    return text, Accounting(total=total, kept=kept, blank=total - kept), used, notes


def _joined(tokens: list[str]) -> str:
    """Return tokens as one text that can be searched for a row of them."""
    return "\0".join(["", *tokens, ""])


def _repeat_notes(train: str, test: str) -> Iterator[str]:
    """Yield a note where much of a test repeats long passages of training."""
    # training is cut into passages side by side, so the ends of a repeat, of less than one passage
    # each, are not counted
    passages = {train[at : at + _N_PASSAGE] for at in range(0, len(train), _N_PASSAGE)}
    repeated, end = 0, 0
    for at in range(len(test) - _N_PASSAGE + 1):
        if test[at : at + _N_PASSAGE] in passages:
            repeated += at + _N_PASSAGE - max(at, end)
            end = at + _N_PASSAGE
    share = repeated / max(1, len(test))
    if share > _MAX_REPEATED:
        yield N_(
            "{share:.0%} of the test repeats training passages; that part measures memory.",
            share=share,
        )
