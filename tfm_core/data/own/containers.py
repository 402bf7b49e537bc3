"""What every upload goes through: files and zips read within limits, each item read or listed.

A container (folders in a zip, arrays, tables, texts) yields items; ``read_each`` is the one loop
over them. What cannot be read is listed with its reason, so nothing of an upload is lost.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tfm_core.data.own_picture import MAX_BYTES
from tfm_core.sentences import N_, StudentError

ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
"""What reading a damaged zip, or a member of one, raises."""
IS_DAMAGED = N_("This file is damaged.")
_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")
_BEGINNING = 4096  # bytes that show what a file is

Item = TypeVar("Item")
Result = TypeVar("Result")


class BadData(StudentError):
    """The upload cannot be used at all. encoding: the wrong one of its text, "" for no guess."""

    encoding: str | None = None


def read_each(
    items: Iterable[Item], read: Callable[[Item], Result], skip: Callable[[Item, str], None]
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with what ``read`` returns of it; one that it refuses goes to ``skip``.

    Raises BadData where ``read`` does: then no item is of use.
    """
    for item in items:
        try:
            result = read(item)
        except BadData:
            raise
        except StudentError as error:
            skip(item, error.sentence)
        else:
            yield item, result


def shown(name: str) -> str:
    """Return a file's name, printable and at most 80 characters long."""
    plain = printable(name)
    return plain if len(plain) <= 80 else f"…{plain[-79:]}"


def printable(text: str) -> str:
    """Return a text with ``?`` in the place of what cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def is_zip(content: bytes) -> bool:
    """Return whether a file begins like a zip."""
    return content.startswith(_BEGINS)


def begin_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the first bytes of a file, b"" where it is damaged."""
    try:
        with archive.open(entry) as file:
            return file.read(_BEGINNING)
    except (*ZIP_DAMAGE, RuntimeError):
        return b""


def member_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int = MAX_BYTES) -> bytes:
    """Return a file, whatever size its entry claims. Raises StudentError."""
    try:
        with archive.open(entry) as file:
            content = file.read(most + 1)
    except (*ZIP_DAMAGE, RuntimeError):
        raise StudentError(IS_DAMAGED) from None
    if len(content) > most:
        raise StudentError("This file unpacks to more than {most} MB.", most=most // 10**6)
    return content
