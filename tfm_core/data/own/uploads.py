"""Uploads of texts as records: one file, two whose lines belong together, or a zip of either.

Parallel texts come as a file a language, line by line (Moses, OPUS): ``train.en`` and ``train.ko``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from tfm_core.data.own import records
from tfm_core.data.own.encodings import TEXT_ENCODINGS
from tfm_core.data.own.pictures import ZIP_DAMAGE, shown
from tfm_core.data.own.pictures_zip import is_zip, member_of
from tfm_core.data.own.rows import MAX_BYTES, decoded
from tfm_core.reading import Unreadable, zip_of
from tfm_core.sentences import N_, Paragraph, StudentError

Upload = bytes | str | Sequence[tuple[str, bytes]]
"""What is pasted, a file, or files with their names."""

_MAX_PACKED = 1_000
"""Files in a zip."""
_TABLE = re.compile(r"\.(csv|tsv|tab|jsonl?|ndjson)$", re.IGNORECASE)
_BESIDE = re.compile(
    r"(^|/)(\.|__MACOSX/|(readme|licen[cs]e)(\.\w+)?$)|/$|\.(xml|ids|scores)$", re.IGNORECASE
)
"""What is packed beside texts, by systems and by OPUS."""


def read_upload(
    upload: Upload, *, encoding: str | None = None, is_test: bool = False, width: int = 0
) -> records.Records:
    """Return the records of an upload; see ``read_records`` and ``texts_of``. Raises BadData."""
    texts, used, notes = texts_of(upload, encoding, most=2)
    if len(texts) == 1:
        found = records.read_records(texts[0][1], is_test=is_test, width=width)
    else:
        found = _aligned(texts, records.TEST_LINE if is_test else records.LINE)
    return replace(found, encoding=used, notes=(*notes, *found.notes))


def texts_of(
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
    if len(files) == 1 and isinstance(content, bytes) and _is_packed(content):
        files, notes = _unpacked(content, most)
    _check_names([name for name, _content in files], most)
    texts, used = [], "utf-8"
    for name, content in files:
        try:
            text, read_as = decoded(content, encoding)
        except records.BadData as error:
            if len(files) > 1:
                error.sentence = N_("{name}: {why}", name=shown(name), why=error.sentence)
            raise
        texts.append((shown(name), text))
        if read_as != "utf-8":
            used = read_as
            called = TEXT_ENCODINGS.get(used, used.upper())
            notes.append(N_("Not UTF-8: read as {encoding}.", encoding=called))
    return texts, used, notes


def _is_packed(content: bytes) -> bool:
    return is_zip(content) and b"xl/workbook" not in content


def _check_names(names: Sequence[str], most: int) -> None:
    is_table = len(names) > 1 and any(map(_TABLE.search, names))
    if is_table or not 1 <= len(names) <= most:
        listed = ", ".join(map(shown, names[:5])) + (", …" if len(names) > 5 else "")
        raise records.BadData(Paragraph("own-data/files", n=len(names), names=listed or "–"))


def _unpacked(content: bytes, most: int) -> tuple[list[tuple[str, bytes | str]], list[str]]:
    """Return the texts in a zip, and a note on what is not read."""
    try:
        with zip_of(content, most=_MAX_PACKED) as archive:
            entries = [one for one in archive.infolist() if not _BESIDE.search(one.filename)]
            _check_names([one.filename for one in entries], most)
            files: list[tuple[str, bytes | str]]
            files = [(one.filename, member_of(archive, one, MAX_BYTES)) for one in entries]
            beside = sorted({*archive.namelist()} - {name for name, _content in files})
    except records.BadData:
        raise
    except Unreadable as error:
        raise records.BadData("{name}: {why}.", name="zip", why=error.sentence) from None
    except StudentError as error:
        raise records.BadData("The zip cannot be read: {why}", why=error.sentence) from None
    except ZIP_DAMAGE:
        raise records.BadData("The zip is damaged. Pack it again.") from None
    return files, [N_("Not read: {names}.", names=shown(", ".join(beside)))] if beside else []


def _aligned(texts: Sequence[tuple[str, str]], numbered: str) -> records.Records:
    """Return a record for each line of two texts; columns are called as what files end in."""
    (first, one), (second, two) = texts
    lines = [text.removesuffix("\n").split("\n") for text in (one, two)]
    n, m = map(len, lines)
    if n != m:
        raise records.BadData(Paragraph("own-data/unequal", first=first, n=n, second=second, m=m))
    records.check_number(n)
    values = [list(pair) if "".join(pair).strip() else "" for pair in zip(*lines, strict=True)]
    paths = PurePath(first), PurePath(second)
    names = tuple(path.suffix[1:] for path in paths)
    if names[0] == names[1] or not all(names):
        names = tuple(path.stem for path in paths)
    note = N_("Read line by line: {first} and {second}.", first=first, second=second)
    return replace(records.of_values(values, numbered=numbered), names=names, notes=(note,))
