"""Uploads of pictures: a zip of folders by class, or IDX files, arrays and tables.

An untrusted zip is limited before it costs anything: the number of files, the unpacked size of each
and of all, and the decoded pixels. A zip marks UTF-8 names with a flag (APPNOTE 4.4.4, bit 11).
Without it Windows writes them in the code page of its language, and Python reads them as cp437.
"""

from __future__ import annotations

import os
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from tfm_core.data.own.containers import (
    IS_DAMAGED,
    ZIP_DAMAGE,
    begin_of,
    is_zip,
    member_of,
    shown,
)
from tfm_core.data.own.encodings import ENCODINGS, likely_encoding
from tfm_core.data.own.pictures import (
    GUESSED,
    MAX_FILES,
    MAX_UNPACKED,
    PARTS,
    Folders,
    LeftOut,
    Part,
    PictureForm,
    PictureItem,
    Pictures,
    ReadingChoices,
    check_size,
    made_alike,
    part_of,
)
from tfm_core.data.own.pictures_arrays import (
    ArrayFile,
    arrays_in,
    arrays_in_npz,
    is_array_file,
    is_npz,
    items_of,
)
from tfm_core.data.own_picture import looks_like_picture, why_not
from tfm_core.reading import Unreadable, zip_of
from tfm_core.sentences import N_, Paragraph, StudentError

_UTF_8, _ENCRYPTED = 0x800, 0x1
_SYSTEM = {"thumbs.db", "desktop.ini"}
_ENDINGS = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".dib", ".gif"}
_ANNOTATIONS = ("annot", "label", "bbox", "instances", "metadata")
_NO_PICTURES = N_("It has no pictures or labels.")
_MANY = 0.05  # the share of files left out that deserves a warning


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
    left_out = LeftOut()
    first, content = files[0]
    if len(files) == 1 and is_zip(content):
        if not is_npz(content):
            return _read_zip(first, content, form, choices)
        arrays, notes = arrays_in_npz(first, content, left_out)
        return _from_arrays(arrays, notes, form, choices, left_out)
    if zips := [name for name, content in files if is_zip(content)]:
        raise StudentError(
            "{name} is a zip, which is a whole set. Upload it alone.", name=shown(zips[0])
        )
    used = [(name, content) for name, content in files if is_array_file(name, content)]
    if not used:
        raise StudentError(Paragraph("own-data/unknown-file", name=shown(first)))
    for name, content in files:
        if (name, content) not in used:
            left_out.add(name, _NO_PICTURES)
    return _from_arrays(*arrays_in(used, left_out), form, choices, left_out)


def _from_arrays(
    arrays: Sequence[ArrayFile],
    notes: Iterable[str],
    form: PictureForm,
    choices: ReadingChoices,
    left_out: LeftOut,
    n_system: int = 0,
) -> Pictures:
    is_turned = choices.is_turned
    if is_turned is None:  # EMNIST is published with rows and columns swapped
        is_turned = any("emnist" in shown(array.name).casefold() for array in arrays)
    understood = ReadingChoices(is_turned=is_turned)
    items = items_of(arrays)
    return made_alike(
        "", items, form, left_out, notes=notes, understood=understood, n_system=n_system
    )


def _read_zip(name: str, content: bytes, form: PictureForm, choices: ReadingChoices) -> Pictures:
    """Read a zip: ``cat/1.png``, or ``train/cat/1.png`` and ``test/cat/2.png``.

    Folders around all others are skipped, and only folders of pictures count as classes. Each file
    becomes a picture, or is skipped with a reason. Raises ValueError: damaged, encrypted, unsafe
    paths, over a limit, or no picture.
    """
    name, left_out = shown(name), LeftOut()
    with _opened(name, content) as archive:
        names, encoding = _names_of(archive.infolist(), choices.encoding)
        for entry, filename in zip(archive.infolist(), names, strict=True):
            entry.filename = filename  # the archive finds it by its original name
        kinds = [(_kind_of(name, archive, entry), entry) for entry in archive.infolist()]
        pictures = [entry for kind, entry in kinds if kind == "picture"]
        others = [entry for kind, entry in kinds if kind == "other"]
        n_system = sum(kind == "system" for kind, _entry in kinds)
        for kind, entry in kinds:
            if kind == "link":
                left_out.add(entry.filename, N_("This is a link to another file."))
        arrays = [one for one in others if is_array_file(one.filename, begin_of(archive, one))]
        # beside pictures a table lists their names or labels, which are not read
        if arrays and not pictures:
            for entry in others:
                if entry not in arrays:
                    left_out.add(entry.filename, _NO_PICTURES)
            read = arrays_in(_unpacked(name, archive, arrays), left_out)
            return _from_arrays(*read, form, choices, left_out, n_system)
        for entry in others:
            begin = begin_of(archive, entry)
            is_damaged = not begin and entry.file_size
            left_out.add(entry.filename, IS_DAMAGED if is_damaged else why_not(begin))
        paths = [_folders(entry) for entry in pictures]
        place_of, understood, folder_names = _layout_of(paths, choices.folders)
        items: list[PictureItem] = []
        for entry in pictures:
            place = place_of(_folders(entry))
            if place is None:
                left_out.add(entry.filename, N_("It is in no class folder."))
                continue
            read_file = partial(member_of, archive, entry)
            items.append(PictureItem(read_file, place[1], place[0], shown(entry.filename)))
        classes = {item.label for item in items}
        _check_labels(len(items), classes, others)
        others_in = [place_of(_folders(one)) for kind, one in kinds if kind in ("folder", "other")]
        return made_alike(
            name,
            items,
            form,
            left_out,
            understood=replace(understood, encoding=encoding),
            n_system=n_system,
            folder_names=folder_names,
            warnings=_empty(others_in, classes),
        )


def _opened(name: str, content: bytes) -> zipfile.ZipFile:
    try:
        return zip_of(content, most=MAX_FILES)
    except Unreadable as error:
        raise StudentError("{name}: {why}.", name=name, why=error.sentence) from None
    except ZIP_DAMAGE:
        raise StudentError("{name} is damaged. Pack it again.", name=name) from None


def _folders(entry: zipfile.ZipInfo) -> Path:
    """Return the folders of a file, or a folder with those around it."""
    path = PurePosixPath(entry.filename)
    return path.parts if entry.filename.endswith("/") else path.parts[:-1]


def _kind_of(name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """Return what an entry is: "picture", "other", "link", "folder", "system"; "" for no matter.

    Pictures are so by their ending or beginning. Raises StudentError for a forged or encrypted one.
    """
    filename = entry.filename
    path = PurePosixPath(filename)
    if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
        raise StudentError(
            "{name} has a file outside the zip: {entry}. Pack the folders again.",
            name=name,
            entry=shown(filename),
        )
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    # files that systems add are counted, but not listed: nobody packed them on purpose
    is_system = hidden or path.name.casefold() in _SYSTEM
    if filename.endswith("/"):
        return "" if is_system else "folder"
    if is_system:
        return "system"
    if entry.flag_bits & _ENCRYPTED:
        raise StudentError(
            "{name} is encrypted ({entry}). Pack it without a password.",
            name=name,
            entry=shown(filename),
        )
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "link"
    is_picture = path.suffix.casefold() in _ENDINGS or looks_like_picture(begin_of(archive, entry))
    return "picture" if is_picture else "other"


def _unpacked(
    name: str, archive: zipfile.ZipFile, entries: Iterable[zipfile.ZipInfo]
) -> list[tuple[str, bytes]]:
    """Return files with their names, within the limit on them all. Raises StudentError."""
    files: list[tuple[str, bytes]] = []
    for entry in entries:
        try:
            files.append((entry.filename, member_of(archive, entry, MAX_UNPACKED)))
        except StudentError as error:
            raise StudentError(
                "{file}: {why}", file=shown(entry.filename), why=error.sentence
            ) from None
        check_size(name, sum(len(content) for _name, content in files))
    return files


def _check_labels(n: int, classes: Iterable[str], others: Iterable[zipfile.ZipInfo]) -> None:
    """Raise StudentError where one folder holds all pictures, and other files the labels."""
    labels = [
        entry.filename
        for entry in others
        if entry.filename.endswith(".xml")
        or any(word in entry.filename.casefold() for word in _ANNOTATIONS)
    ]
    folder, *more = classes or [""]
    if folder and labels and not more:
        path, file = shown(folder), shown(labels[0])
        raise StudentError(Paragraph("own-data/one-folder", n=n, path=path, file=file))


def _empty(folders: Iterable[Place | None], classes: Container[str]) -> tuple[str, ...]:
    """Return a note on class folders without pictures."""
    empty = dict.fromkeys(place[1] for place in folders if place and place[1] not in classes)
    if not empty:
        return ()
    names = ", ".join(f"“{shown(name)}”" for name in empty)
    return (N_("Folders without pictures, not classes: {names}.", n=len(empty), names=names),)


def _names_of(
    entries: Sequence[zipfile.ZipInfo], encoding: str | None
) -> tuple[list[str], str | None]:
    """Return the name of each entry, and the encoding used, None where all are declared.

    encoding: a key of ``ENCODINGS``, or None to guess. Names are in NFC, with / between folders.
    """
    raw_names = [_undeclared(entry) for entry in entries]
    doubtful = [raw for raw in raw_names if raw is not None]
    used = None
    if doubtful:
        used = encoding if encoding in ENCODINGS else likely_encoding(doubtful) or "cp437"
    names = []
    for entry, raw in zip(entries, raw_names, strict=True):
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


def _layout_of(
    folders: Sequence[Path], choice: Folders | None
) -> tuple[Callable[[Path], Place | None], ReadingChoices, tuple[str, ...]]:
    """Return what the folders of pictures mean: where each one belongs, None for in no class.

    Also what the outer folders are taken for, and their names, where they may be splits or classes;
    ``choice`` decides. Raises StudentError where they are splits without classes in them.
    """
    different = {folder for folder in folders if folder}
    wrapper: Path = ()  # folders around all others
    while len({folder[0] for folder in different}) == 1 and any(len(one) > 1 for one in different):
        wrapper += (next(iter(different))[0],)
        different = {folder[1:] for folder in different if len(folder) > 1}
    names = sorted({folder[0] for folder in different})
    parts = {name: part for name in names if (part := part_of(name))}
    kinds = set(parts.values())
    are_all = len(parts) == len(names)
    has_inner = any(len(folder) > 1 and folder[0] in parts for folder in different)
    if not has_inner and len(kinds) > 1:
        quoted = ", ".join(f"“{shown(name)}”" for name in parts)
        raise StudentError(Paragraph("own-data/splits-without-classes", names=quoted))
    inner = {part_of(folder[1]) if len(folder) > 1 else None for folder in different}
    is_inside = not has_inner and len(names) > 1 and None not in inner and len(inner) > 1
    outer: Folders = choice or ("splits" if len(kinds) > 1 or are_all else "classes")
    splits = _splits(different, parts) if has_inner and outer == "splits" else None

    def place(folder: Path) -> Place | None:
        rest = _without(folder, wrapper)
        if not rest:
            return None
        if is_inside:
            part = part_of(rest[1]) if len(rest) > 1 else None
            return None if part is None else (PARTS.index(part), rest[0])
        if splits is None:
            return None, rest[0]
        if rest[0] not in splits:
            return None
        named, around = splits[rest[0]]
        rest = _without(rest[1:], around)
        return (PARTS.index(named), rest[0]) if rest else None

    if not has_inner or (len(kinds) > 1 and are_all):
        return place, GUESSED, ()
    return place, ReadingChoices(outer), tuple(map(shown, names))


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
