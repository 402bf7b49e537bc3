"""What every upload goes through: files and zips read within limits, each item read or listed.

A container (folders in a zip, arrays, tables, texts) yields items; ``read_each`` is the one loop
over them. What cannot be read keeps its reason, so nothing of an upload is lost: items kept and
items skipped are the items of the upload.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tfm_core.choices.config.own_pictures import MAX_CLASSES
from tfm_core.data.own_picture import MAX_BYTES
from tfm_core.reading import Unreadable, zip_of
from tfm_core.sentences import N_, StudentError

ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
"""What reading a damaged zip, or a member of one, raises."""
IS_DAMAGED = N_("This file is damaged.")
_BEGINNING = 4096  # bytes that show what a file is
_MILLION = 10**6


class Limit(NamedTuple):
    """How much is read of something, and what is said where there is more."""

    most: int
    sentence: str
    per: int = 1
    """The unit of the number in the sentence."""


LIMITS = {
    # of texts
    "bytes": Limit(32 * 2**20, N_("This has {size:,} bytes; the limit is {most:,}.")),
    # one more is read, which may be a header
    "rows": Limit(200_000, N_("This has more than {most:,} rows. Remove some.")),
    "labels": Limit(
        100, N_("There are {n:,} labels; the limit is {most}. Is another column the label?")
    ),
    # of pictures, and of the arrays and tables that hold them
    "pictures": Limit(
        70_000, N_("There are {n:,} pictures; the limit is {fits:,} at {size} x {size} pixels.")
    ),
    "array": Limit(70_000, N_("{name} has the shape {shape}; the limit is {most:,} pictures.")),
    "lines": Limit(70_000, N_("{name} has {n:,} lines; the limit is {most:,} pictures.")),
    "cells": Limit(2**20, N_("{name} has a line of more than {most:,} cells.")),
    "arrays": Limit(12, N_("{name} has {n} arrays; the limit is {most}.")),
    "classes": Limit(
        MAX_CLASSES, N_("There are {n:,} classes; the limit is {most}. Each folder is one class.")
    ),
    # bytes of what is unpacked: the files of a zip, gzips, arrays
    "unpacked": Limit(
        400 * _MILLION,
        N_("{name} unpacks to more than {most} MB. Use fewer or smaller pictures."),
        _MILLION,
    ),
    "gzip": Limit(400 * _MILLION, N_("{name} unpacks to more than {most} MB."), _MILLION),
    "npz": Limit(
        400 * _MILLION, N_("With {name} the arrays unpack to more than {most} MB."), _MILLION
    ),
}
MAX_FILES = 140_000
"""In a zip, and lines of a table, whether they hold pictures or not."""


class BadData(StudentError):
    """The upload cannot be used at all. encoding: the wrong one of its text, "" for no guess."""

    encoding: str | None = None


def check(limit: str, n: int, *, most: int | None = None, **values: object) -> None:
    """Raise BadData where ``n`` is more than a limit, or than ``most``."""
    usual, sentence, per = LIMITS[limit]
    most = usual if most is None else most
    if n > most:
        raise BadData(sentence, n=n, most=most // per, **values)


@dataclass(frozen=True, slots=True)
class Item:
    """What a container yields: a picture or a row of a text, where it stood, and what it is of."""

    content: Any = None  # as the container has it; a text or a picture once it is read
    label: str = ""  # the class of a picture or sentence, the target of a pair
    split: int | None = None  # a place in ``SPLITS``, where a folder or file names one
    line: int = 0  # where it begins, counted from 1
    n_lines: int = 1
    numbered: str = ""  # how a line is called, "" where the name alone says the place
    name: str = ""  # of the file
    why: str = ""  # why it is skipped, if it is
    is_cut: bool = False  # whether a text is the beginning of a longer one
    is_unclosed: bool = False  # whether the quotes of a row do not fit, so that they are text

    @property
    def place(self) -> str:
        """The place in words."""
        if not self.numbered:
            return self.name
        return N_(self.numbered, line=self.line, name=self.name)

    @property
    def texts(self) -> tuple[str, str]:
        """The source and target of a pair, or a sentence and its label."""
        return self.content, self.label

    @property
    def reason(self) -> str:
        """Why it is skipped, in a sentence on its own: that on a row says its place itself."""
        return N_("{name}: {why}", name=self.place, why=self.why) if self.name else self.why


def read_each(items: Iterable[Item], read: Callable[[Item], Item]) -> list[Item]:
    """Return every item as ``read`` does, or without its content and with why it is skipped.

    Raises BadData where ``read`` does: then no item is of use.
    """

    def outcome(item: Item) -> Item:
        try:
            return item if item.why else read(item)
        except BadData:
            raise
        except StudentError as error:
            # without what would hold a whole zip as long as the report is shown
            return replace(item, content=None, why=error.sentence)

    return [outcome(item) for item in items]


def kept(items: Iterable[Item]) -> list[Item]:
    """Return the items that are not skipped."""
    return [item for item in items if not item.why]


def skipped(items: Iterable[Item]) -> list[Item]:
    """Return the items that are skipped."""
    return [item for item in items if item.why]


def n_lines(items: Iterable[Item]) -> int:
    """Return how many lines or files items are."""
    return sum(item.n_lines for item in items)


def shown(name: str) -> str:
    """Return a file's name, printable and at most 80 characters long."""
    plain = printable(name)
    return plain if len(plain) <= 80 else f"…{plain[-79:]}"


def printable(text: str) -> str:
    """Return a text with ``?`` in the place of what cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def is_zip(content: bytes) -> bool:
    """Return whether a file begins like a zip."""
    return content.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def begin_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the first bytes of a file, b"" where it is damaged."""
    try:
        with archive.open(entry) as file:
            return file.read(_BEGINNING)
    except (*ZIP_DAMAGE, RuntimeError):
        return b""


def opened_zip(content: bytes, name: str, most: int) -> zipfile.ZipFile:
    """Return a zip of at most ``most`` files. Raises BadData that names it."""
    try:
        return zip_of(content, most=most)
    except Unreadable as error:
        raise BadData("{name}: {why}.", name=name, why=error.sentence) from None
    except ZIP_DAMAGE:
        raise BadData("{name} is damaged. Pack it again.", name=name) from None


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
