"""Names in an upload: their encoding, and folders as splits and classes.

A zip marks UTF-8 names with a flag (APPNOTE 4.4.4, bit 11). Without it Windows writes them in the
code page of its language, and Python reads them as cp437.
"""

from __future__ import annotations

import os
import unicodedata
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfm_core.data.own.encodings import ENCODINGS, likely_encoding
from tfm_core.data.own.pictures import PARTS, Folders, Part, part_of, shown
from tfm_core.sentences import Paragraph, StudentError

_UTF_8 = 0x800


def named(entries: Sequence[zipfile.ZipInfo], encoding: str | None) -> tuple[list[str], str | None]:
    """Return the name of each entry, and the encoding used, None where all are declared.

    encoding: a key of ``ENCODINGS``, or None to guess. Names are in NFC, with / between folders.
    """
    doubtful = [raw for entry in entries if (raw := _undeclared(entry)) is not None]
    used = None
    if doubtful:
        used = encoding if encoding in ENCODINGS else likely_encoding(doubtful) or "cp437"
    names = []
    for entry in entries:
        raw = _undeclared(entry)
        name = entry.filename if raw is None or used is None else raw.decode(used, "replace")
        names.append(unicodedata.normalize("NFC", name.replace("\\", "/")))
    return names, used


def _undeclared(entry: zipfile.ZipInfo) -> bytes | None:
    """Return the bytes of a name of undeclared encoding, else None."""
    if entry.flag_bits & _UTF_8 or entry.orig_filename.isascii():
        return None
    read = entry.orig_filename.split("\0")[0]
    if entry.filename not in (read, read.replace(os.sep, "/")):
        return None  # an extra field says the name in Unicode, and Python took it
    return read.encode("cp437")


Path = tuple[str, ...]
"""Folders from the outermost to the innermost."""

Place = tuple[int | None, str]
"""A split as its place in ``PARTS``, where one is named, and the folder of a class."""


@dataclass(frozen=True, slots=True)
class FolderLayout:
    """Where the folders of the classes are.

    wrapper: folders around all others. splits: for each folder of a split, the split and the
    folders in it around the classes; None where there are no splits above the classes.
    is_split_inside: whether splits are folders in those of the classes. names: the folders that
    are splits or classes where both are possible, else none.
    """

    wrapper: Path
    splits: Mapping[str, tuple[Part, Path]] | None = None
    is_split_inside: bool = False
    names: tuple[str, ...] = ()

    def place(self, folder: Path) -> Place | None:
        """Return the split and the class of a folder, None where it is in no class folder."""
        rest = _without(folder, self.wrapper)
        if not rest:
            return None
        if self.is_split_inside:
            part = part_of(rest[1]) if len(rest) > 1 else None
            return None if part is None else (PARTS.index(part), rest[0])
        if self.splits is None:
            return None, rest[0]
        if rest[0] not in self.splits:
            return None
        part, inner = self.splits[rest[0]]
        rest = _without(rest[1:], inner)
        return (PARTS.index(part), rest[0]) if rest else None


def layout_of(folders: Sequence[Path], choice: Folders | None = None) -> FolderLayout:
    """Return what the folders of pictures mean, one for each picture.

    choice: what the outer folders are, where they may be splits or classes. Raises StudentError
    where they are splits without classes in them.
    """
    different = {folder for folder in folders if folder}
    wrapper: Path = ()
    while len({folder[0] for folder in different}) == 1 and any(len(one) > 1 for one in different):
        wrapper += (next(iter(different))[0],)
        different = {folder[1:] for folder in different if len(folder) > 1}
    names = sorted({folder[0] for folder in different})
    parts = {name: part for name in names if (part := part_of(name))}
    has_inner = any(len(folder) > 1 and folder[0] in parts for folder in different)
    kinds = set(parts.values())
    if not has_inner:
        if len(kinds) > 1:
            quoted = ", ".join(f"“{shown(name)}”" for name in parts)
            raise StudentError(Paragraph("own-data/splits-without-classes", names=quoted))
        inner = {part_of(folder[1]) if len(folder) > 1 else None for folder in different}
        is_inside = len(names) > 1 and None not in inner and len(inner) > 1
        return FolderLayout(wrapper, is_split_inside=is_inside)
    is_clear = len(kinds) > 1 and len(parts) == len(names)
    guess: Folders = "splits" if len(kinds) > 1 or len(parts) == len(names) else "classes"
    ambiguous = () if is_clear else tuple(names)
    if (choice or guess) == "classes":
        return FolderLayout(wrapper, names=ambiguous)
    return FolderLayout(wrapper, _splits(different, parts), names=ambiguous)


def _splits(folders: Iterable[Path], parts: Mapping[str, Part]) -> dict[str, tuple[Part, Path]]:
    """Return the split of each folder, and the folders in it that are around the classes."""
    inner: dict[str, Path] = {}
    below: dict[str, set[Path]] = {name: set() for name in parts}
    for folder in folders:
        if folder[0] in parts and len(folder) > 1:
            below[folder[0]].add(folder[1:])
    for name, rests in below.items():
        inner[name] = ()
        while (only := _only(rests)) and part_of(only) == parts[name]:  # seg_train/seg_train/cat
            inner[name] += (only,)
            rests = below[name] = {rest[1:] for rest in rests if len(rest) > 1}
    while all(_only(rests) for rests in below.values() if rests):  # train/images/cat
        for name, rests in below.items():
            if only := _only(rests):
                inner[name] += (only,)
                below[name] = {rest[1:] for rest in rests if len(rest) > 1}
    return {name: (part, inner[name]) for name, part in parts.items()}


def _only(rests: Iterable[Path]) -> str:
    """Return the first folder if all share it and some have folders below it, else ""."""
    first = {rest[0] for rest in rests}
    return first.pop() if len(first) == 1 and any(len(rest) > 1 for rest in rests) else ""


def _without(folder: Path, outer: Path) -> Path:
    """Return a folder below an outer one, () where it is not below it."""
    return folder[len(outer) :] if folder[: len(outer)] == outer else ()
