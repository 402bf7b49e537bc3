"""A zip of folders by class, read in memory: nothing of it is ever written to the disk.

What may be wrong with a foreign zip is bounded before it costs anything: the number of its files,
what each unpacks to, what all of them do, and the pixels that are decoded.
"""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from tfm_core.data.own.pictures import (
    MOST_DECODED,
    MOST_PICTURES,
    MOST_UNPACKED,
    PARTS,
    Form,
    LeftOut,
    Pictures,
    check_classes,
    check_room,
    class_labels,
    class_order,
    notes_on,
    part_of,
    shown,
    squared,
)
from tfm_core.data.own.pictures_idx import read_idx
from tfm_core.data.own_picture import MOST_BYTES, opened
from tfm_core.sentences import N_, StudentError

_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")
_MOST_ENTRIES = 2 * MOST_PICTURES
_ENCRYPTED = 0x1
_JUNK = {"thumbs.db", "desktop.ini"}
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


def is_zip(content: bytes) -> bool:
    """Say whether a file begins like a zip."""
    return content.startswith(_BEGINS)


def read_zip(name: str, content: bytes, form: Form) -> Pictures:
    """Read a zip: ``cat/1.png``, or ``train/cat/1.png`` and ``test/cat/2.png``.

    Folders that hold all the others are looked through. Files that are no pictures are left out and
    said. Raises ValueError, in a sentence: not a whole zip, encrypted, paths that leave it, too
    much of anything, nothing left.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except _DAMAGE:
        raise StudentError(
            "{name} is not a whole zip: its list of files cannot be read. Pack it again.",
            name=shown(name),
        ) from None
    with archive:
        entries = _entries(shown(name), archive)
        left_out = LeftOut()
        for entry in [one for one in entries if _is_link(one)]:
            left_out.add(entry.filename, N_("is a link to a file elsewhere, and was left out."))
        files = [one for one in entries if not _is_link(one)]
        if _holds_idx(archive, files):
            return read_idx([(one.filename, _unpacked(archive, one)) for one in files], form)
        placed = _placed([PurePosixPath(one.filename).parts for one in files])
        kept = []
        for entry, place in zip(files, placed, strict=True):
            if place is None:
                left_out.add(entry.filename, N_("lies in no folder, so nothing says its class."))
            else:
                kept.append((entry, *place))
        check_room(len(kept), form)
        check_classes(len({class_name for _entry, _part, class_name in kept}))
        return _read(shown(name), archive, kept, form, left_out)


def _holds_idx(archive: zipfile.ZipFile, files: Sequence[zipfile.ZipInfo]) -> bool:
    """Say whether a zip holds IDX files and nothing else."""
    if not 0 < len(files) <= 2 * len(PARTS):
        return False
    return all("ubyte" in one.filename or ".idx" in one.filename for one in files)


def _entries(name: str, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files that somebody packed. Raises StudentError for what no honest zip has."""
    found = archive.infolist()
    if len(found) > _MOST_ENTRIES:
        raise StudentError(
            "{name} holds {n:,} files, but at most {most:,} pictures are taken; leave some out.",
            name=name,
            n=len(found),
            most=MOST_PICTURES,
        )
    files = []
    for entry in found:
        entry.filename = entry.filename.replace("\\", "/")  # as old programs of Windows pack
        path = PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise StudentError(
                "{name} holds a file called {entry}, which points outside of the zip. No program "
                "packs that by itself, so none of it was read; pack the folders again.",
                name=name,
                entry=shown(entry.filename),
            )
        if entry.is_dir() or _is_junk(path):
            continue
        if entry.flag_bits & _ENCRYPTED:
            raise StudentError(
                "{name} is encrypted ({entry} asks for a password); pack it without one.",
                name=name,
                entry=shown(entry.filename),
            )
        files.append(entry)
    return files


def _is_junk(path: PurePosixPath) -> bool:
    """Say whether a file is one that an operating system adds by itself."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return hidden or path.name.casefold() in _JUNK


def _is_link(entry: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)


Place = tuple[int | None, str]
"""A split as its place in ``PARTS``, where one is named, and the folder of a class."""


def _placed(paths: Sequence[tuple[str, ...]]) -> list[Place | None]:
    """Return the split and class that each path says, None for one that lies in no folder."""
    folders = [path[:-1] for path in paths]
    rest = [path for path in folders if path]
    while rest and len({path[0] for path in rest}) == 1 and all(len(path) > 1 for path in rest):
        folders = [path[1:] for path in folders]
        rest = [path[1:] for path in rest]
    parts = {path[0]: part_of(path[0]) for path in rest}
    named = bool(rest) and all(parts.values()) and all(len(path) > 1 for path in rest)
    places: list[Place | None] = []
    for path in folders:
        if not path:
            places.append(None)
        elif named:
            part = parts[path[0]]
            assert part is not None
            places.append((PARTS.index(part), path[1]))
        else:
            places.append((None, path[0]))
    return places


def _read(
    name: str,
    archive: zipfile.ZipFile,
    kept: Sequence[tuple[zipfile.ZipInfo, int | None, str]],
    form: Form,
    left_out: LeftOut,
) -> Pictures:
    """Decode the pictures one by one, within what all of them may cost together."""
    done: Counter[str] = Counter()
    images, classes, names, parts = [], [], [], []
    unpacked = decoded = 0
    for entry, part, class_name in kept:
        try:
            picture = _unpacked(archive, entry)
            unpacked += len(picture)
            _check_sum(name, unpacked, decoded)
            image, (width, height) = opened(picture)
            decoded += width * height
            _check_sum(name, unpacked, decoded)
        except _TooMuch:
            raise
        except StudentError as error:
            left_out.add(entry.filename, error.sentence)
            continue
        images.append(squared(image, form, done))
        classes.append(class_name)
        names.append(entry.filename)
        parts.append(part)
    if not images:
        first = left_out.sentences[:1] or [N_("It holds no file.")]
        raise StudentError(
            "{name} holds no picture that can be read. {first} A folder for each class, with PNG "
            "or JPEG files in it, would be right.",
            name=name,
            first=first[0],
        )
    called = class_labels(classes)
    classes = [called[folder] for folder in classes]
    class_names = class_order(classes)
    number = {class_name: at for at, class_name in enumerate(class_names)}
    return Pictures(
        np.stack(images),
        np.array([number[one] for one in classes], np.int64),
        class_names,
        tuple(shown(one) for one in names),
        np.array(parts, np.int8) if parts[0] is not None else None,
        tuple(left_out.sentences),
        left_out.n,
        tuple(notes_on(done, len(images), form)),
    )


class _TooMuch(StudentError):
    """The whole zip is refused, not one file of it."""


def _check_sum(name: str, unpacked: int, decoded: int) -> None:
    if unpacked > MOST_UNPACKED:
        raise _TooMuch(
            "{name} unpacks to more than {most} MB, which is more than is read; leave pictures "
            "out, or make them smaller.",
            name=name,
            most=MOST_UNPACKED // 10**6,
        )
    if decoded > MOST_DECODED:
        raise _TooMuch(
            "The pictures of {name} have more than {most:,} million pixels together, which is "
            "more than is read; make them smaller.",
            name=name,
            most=MOST_DECODED // 10**6,
        )


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return a file, whatever size its entry claims. Raises StudentError."""
    try:
        with archive.open(entry) as file:
            content = file.read(MOST_BYTES + 1)
    except (*_DAMAGE, RuntimeError):
        raise StudentError("is damaged in the zip, and was left out.") from None
    if len(content) > MOST_BYTES:
        raise StudentError(
            "unpacks to more than {most} MB, which no picture needs here; it was left out.",
            most=MOST_BYTES // 10**6,
        )
    return content
