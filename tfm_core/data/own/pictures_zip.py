"""Reading uploads: a zip of folders by class, in memory, or any other supported file.

An untrusted zip is limited before it costs anything: the number of files, the unpacked size of each
and of all, and the decoded pixels.
"""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np

from tfm_core.data.own.pictures import (
    GUESSED,
    MAX_DECODED,
    MAX_FILES,
    MAX_UNPACKED,
    ZIP_DAMAGE,
    Folders,
    LeftOut,
    PictureForm,
    Pictures,
    ReadingChoices,
    as_square,
    check_classes,
    check_n_pictures,
    class_labels,
    class_order,
    notes_on,
    shown,
)
from tfm_core.data.own.pictures_arrays import is_npz, read_npz
from tfm_core.data.own.pictures_folders import Place, layout_of, named
from tfm_core.data.own.pictures_table import is_array_file, read_array_files
from tfm_core.data.own_picture import MAX_BYTES, looks_like_picture, opened, why_not
from tfm_core.reading import Unreadable, zip_of
from tfm_core.sentences import N_, Paragraph, StudentError

_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")
_ENCRYPTED = 0x1
_SYSTEM = {"thumbs.db", "desktop.ini"}
_ENDINGS = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".dib", ".gif"}
_ANNOTATIONS = ("annot", "label", "bbox", "instances", "metadata")
_IS_DAMAGED = N_("This file is damaged.")
_MANY = 0.05  # the share of files left out that deserves a warning
_BEGINNING = 4096  # bytes that show what a file is


@dataclass(slots=True)
class _Packed:
    """The files of a zip: candidates are pictures by their ending or beginning, others are not."""

    candidates: list[zipfile.ZipInfo]
    others: list[zipfile.ZipInfo]
    folders: list[str]
    n_system: int
    encoding: str | None


def read_pictures(
    files: Sequence[tuple[str, bytes]], form: PictureForm, choices: ReadingChoices = GUESSED
) -> Pictures:
    """Read what was uploaded, each file with its name: one zip, one npz, IDX files or tables.

    Raises ValueError that names the file.
    """
    read = _read_files(files, form, choices)
    n = len(read) + read.n_left_out
    if read.n_left_out <= _MANY * n:
        return read
    words = N_(
        "Skipped: {n:,} of {all:,} files or lines ({share:.0f}%); see why below.",
        n=read.n_left_out,
        all=n,
        share=100 * read.n_left_out / n,
    )
    return replace(read, warnings=(words, *read.warnings))


def _read_files(
    files: Sequence[tuple[str, bytes]], form: PictureForm, choices: ReadingChoices
) -> Pictures:
    if not files:
        raise StudentError("Choose a zip of folders, or IDX files.")
    zips = [(name, content) for name, content in files if is_zip(content)]
    if len(zips) == 1 and len(files) == 1:
        read = read_npz if is_npz(zips[0][1]) else read_zip
        return read(*zips[0], form, choices)
    if zips:
        raise StudentError(
            "{name} is a zip, which is a whole set. Upload it alone.", name=shown(zips[0][0])
        )
    arrays = [(name, content) for name, content in files if is_array_file(name, content)]
    if not arrays:
        raise StudentError(Paragraph("own-data/unknown-file", name=shown(files[0][0])))
    left_out = LeftOut()
    for name, content in files:
        if (name, content) not in arrays:
            left_out.add(name, N_("It has no pictures or labels."))
    return read_array_files(arrays, form, choices, left_out)


def is_zip(content: bytes) -> bool:
    """Return whether a file begins like a zip."""
    return content.startswith(_BEGINS)


def read_zip(
    name: str, content: bytes, form: PictureForm, choices: ReadingChoices = GUESSED
) -> Pictures:
    """Read a zip: ``cat/1.png``, or ``train/cat/1.png`` and ``test/cat/2.png``.

    Folders around all others are skipped, and only folders of pictures count as classes. Each file
    becomes a picture, or is skipped with a reason. Raises ValueError: damaged, encrypted, unsafe
    paths, over a limit, or no picture.
    """
    try:
        archive = zip_of(content, most=MAX_FILES)
    except Unreadable as error:
        raise StudentError("{name}: {why}.", name=shown(name), why=error.sentence) from None
    except ZIP_DAMAGE:
        raise StudentError("{name} is damaged. Pack it again.", name=shown(name)) from None
    with archive:
        left_out = LeftOut()
        packed = _packed(shown(name), archive, choices, left_out)
        arrays = [one for one in packed.others if is_array_file(one.filename, _begin(archive, one))]
        if arrays and not packed.candidates:
            return _from_arrays(shown(name), archive, packed, arrays, form, choices, left_out)
        for entry in packed.others:
            begin = _begin(archive, entry)
            is_damaged = not begin and entry.file_size
            left_out.add(entry.filename, _IS_DAMAGED if is_damaged else why_not(begin))
        paths = [PurePosixPath(one.filename).parts[:-1] for one in packed.candidates]
        layout = layout_of(paths, choices.folders)
        entries = []
        for entry, path in zip(packed.candidates, paths, strict=True):
            place = layout.place(path)
            if place is None:
                left_out.add(entry.filename, N_("It is in no class folder."))
            else:
                entries.append((entry, *place))
        check_n_pictures(len(entries), form)
        check_classes(len({class_name for _entry, _part, class_name in entries}))
        _check_labels(entries, packed.others)
        read = _read(shown(name), archive, entries, form, left_out)
        empty = _empty([layout.place(PurePosixPath(one).parts) for one in packed.folders], entries)
        outer: Folders = "classes" if layout.splits is None else "splits"
        return replace(
            read,
            warnings=tuple(empty),
            n_system=packed.n_system,
            understood=ReadingChoices(outer if layout.names else None, packed.encoding),
            folder_names=tuple(map(shown, layout.names)),
        )


def _packed(
    name: str, archive: zipfile.ZipFile, choices: ReadingChoices, left_out: LeftOut
) -> _Packed:
    """Return the entries by kind. Raises StudentError for a forged or encrypted zip."""
    infos = archive.infolist()
    names, encoding = named(infos, choices.encoding)
    packed = _Packed([], [], [], 0, encoding)
    for entry, filename in zip(infos, names, strict=True):
        entry.filename = filename  # the archive finds it by its original name
        path = PurePosixPath(filename)
        if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
            raise StudentError(
                "{name} has a file outside the zip: {entry}. Pack the folders again.",
                name=name,
                entry=shown(filename),
            )
        hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
        is_system = hidden or path.name.casefold() in _SYSTEM
        if filename.endswith("/"):
            if not is_system:
                packed.folders.append(filename)
        elif is_system:
            packed.n_system += 1
        elif entry.flag_bits & _ENCRYPTED:
            raise StudentError(
                "{name} is encrypted ({entry}). Pack it without a password.",
                name=name,
                entry=shown(filename),
            )
        elif stat.S_ISLNK(entry.external_attr >> 16):
            left_out.add(filename, N_("This is a link to another file."))
        elif path.suffix.casefold() in _ENDINGS or looks_like_picture(_begin(archive, entry)):
            packed.candidates.append(entry)
        else:
            packed.others.append(entry)
            packed.folders.append(str(path.parent))
    return packed


def _from_arrays(
    name: str,
    archive: zipfile.ZipFile,
    packed: _Packed,
    arrays: Sequence[zipfile.ZipInfo],
    form: PictureForm,
    choices: ReadingChoices,
    left_out: LeftOut,
) -> Pictures:
    """Read the IDX files or tables in a zip without pictures, and skip all other files."""
    for entry in packed.others:
        if entry not in arrays:
            left_out.add(entry.filename, N_("It has no pictures or labels."))
    files, unpacked = [], 0
    for entry in arrays:
        try:
            files.append((entry.filename, member_of(archive, entry, MAX_UNPACKED)))
        except StudentError as error:
            raise StudentError(
                "{file}: {why}", file=shown(entry.filename), why=error.sentence
            ) from None
        unpacked += len(files[-1][1])
        _check_sum(name, unpacked, 0)
    return replace(read_array_files(files, form, choices, left_out), n_system=packed.n_system)


_ClassEntry = tuple[zipfile.ZipInfo, int | None, str]


def _check_labels(entries: Sequence[_ClassEntry], others: Iterable[zipfile.ZipInfo]) -> None:
    """Raise StudentError where one folder holds all pictures, and other files the labels."""
    classes = {class_name for _entry, _part, class_name in entries}
    labels = [
        entry.filename
        for entry in others
        if entry.filename.endswith(".xml")
        or any(word in entry.filename.casefold() for word in _ANNOTATIONS)
    ]
    if len(classes) == 1 and labels:
        raise StudentError(
            Paragraph(
                "own-data/one-folder",
                n=len(entries),
                path=shown(classes.pop()),
                file=shown(labels[0]),
            )
        )


def _empty(folders: Iterable[Place | None], entries: Iterable[_ClassEntry]) -> list[str]:
    """Return a note on class folders without pictures."""
    full = {class_name for _entry, _part, class_name in entries}
    empty = dict.fromkeys(place[1] for place in folders if place and place[1] not in full)
    if not empty:
        return []
    names = ", ".join(f"“{shown(name)}”" for name in empty)
    return [N_("Folders without pictures, not classes: {names}.", n=len(empty), names=names)]


def _read(
    name: str,
    archive: zipfile.ZipFile,
    entries: Sequence[_ClassEntry],
    form: PictureForm,
    left_out: LeftOut,
) -> Pictures:
    """Decode the pictures one by one, within the limits on their total size."""
    done: Counter[str] = Counter()
    images, classes, names, parts = [], [], [], []
    unpacked = decoded = 0
    for entry, part, class_name in entries:
        try:
            picture = member_of(archive, entry)
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
        images.append(as_square(image, form, done))
        classes.append(class_name)
        names.append(entry.filename)
        parts.append(part)
    if not images:
        first = left_out.sentences[:1] or [N_("The zip is empty.")]
        raise StudentError(Paragraph("own-data/no-picture", name=name, first=first[0]))
    class_of_folder = class_labels(classes)
    classes = [class_of_folder[folder] for folder in classes]
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
    if unpacked > MAX_UNPACKED:
        raise _TooMuch(
            "{name} unpacks to more than {most} MB. Use fewer or smaller pictures.",
            name=name,
            most=MAX_UNPACKED // 10**6,
        )
    if decoded > MAX_DECODED:
        raise _TooMuch(Paragraph("own-data/too-many-pixels", name=name, most=MAX_DECODED // 10**6))


def _begin(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
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
        raise StudentError(_IS_DAMAGED) from None
    if len(content) > most:
        raise StudentError("This file unpacks to more than {most} MB.", most=most // 10**6)
    return content
