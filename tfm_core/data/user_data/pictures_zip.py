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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath

from tfm_core.data.user_data.pictures import PictureForm, make_alike, part_of
from tfm_core.data.user_data.pictures_arrays import (
    Arrays,
    arrays_in,
    arrays_in_npz,
    is_array_file,
)
from tfm_core.data.user_data.sets import SPLITS
from tfm_core.data.user_data.uploads import (
    ENCODINGS,
    GUESSED,
    IS_DAMAGED,
    LIMITS,
    MAX_FILES,
    Accounting,
    Folders,
    Item,
    ReadAs,
    Remark,
    Report,
    check,
    first_bytes,
    is_zip,
    kept,
    likely_encoding,
    open_zip,
    read_member,
    set_name,
    shown,
)
from tfm_core.data.user_picture import looks_like_picture, why_not
from tfm_core.sentences import N_, Paragraph, StudentError

_UTF_8, _ENCRYPTED = 0x800, 0x1
_SYSTEM = {"thumbs.db", "desktop.ini"}
_ENDINGS = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".dib", ".gif"}
_ANNOTATIONS = ("annot", "label", "bbox", "instances", "metadata")
_NO_PICTURES = N_("It has no pictures or labels.")


def inspect_pictures(
    files: Sequence[tuple[str, bytes]],
    form: PictureForm,
    choices: ReadAs = GUESSED,
    *,
    name: str = "",
) -> Report:
    """Read what was uploaded, each file with its name: one zip, one npz, IDX files or tables.

    name: of the set. Never raises for its content.
    """
    report = Report("pictures", set_name(name, "pictures"), {"by": "seed"})
    try:
        _inspect(report, files, form, choices)
    except StudentError as error:
        report.refusal = error.sentence
    return report


def _inspect(
    report: Report, files: Sequence[tuple[str, bytes]], form: PictureForm, choices: ReadAs
) -> None:
    """Fill a report. Raises StudentError that names the file."""
    if not files:
        raise StudentError("Choose a zip of folders, or IDX files.")
    first, content = files[0]
    if len(files) == 1 and is_zip(content):
        with open_zip(content, shown(first), MAX_FILES) as archive:
            names = archive.namelist()
            if names and all(name.endswith(".npy") for name in names):
                _read_arrays(report, [], arrays_in_npz(first, archive), form, choices)
            else:
                _read_zip(report, shown(first), archive, form, choices)
        return
    if zips := [name for name, content in files if is_zip(content)]:
        raise StudentError(
            "{name} is a zip, so it holds a whole set. Upload it alone.", name=shown(zips[0])
        )
    used = [(name, content) for name, content in files if is_array_file(name, content)]
    if not used:
        raise StudentError(Paragraph("own-data/unknown-file", name=shown(first)))
    others = [
        _skipped(name, _NO_PICTURES) for name, content in files if (name, content) not in used
    ]
    _read_arrays(report, others, arrays_in(used), form, choices)


def _skipped(name: str, why: str) -> Item:
    return Item(name=shown(name), why=why)


def _read_arrays(
    report: Report,
    others: Sequence[Item],
    arrays: Arrays,
    form: PictureForm,
    choices: ReadAs,
) -> None:
    """Read the pictures of arrays. others: files beside them."""
    items, notes = arrays
    is_turned = choices.is_turned
    if is_turned is None:  # EMNIST is published with rows and columns swapped
        is_turned = any("emnist" in item.name.casefold() for item in kept(items))
    report.read_as = ReadAs(is_turned=is_turned)
    report.findings = tuple(Remark("note", words) for words in notes)
    make_alike(report, "", [*others, *items], form)


def _read_zip(
    report: Report, name: str, archive: zipfile.ZipFile, form: PictureForm, choices: ReadAs
) -> None:
    """Read a zip: ``cat/1.png``, or ``train/cat/1.png`` and ``test/cat/2.png``.

    Folders around all others are skipped, and only folders of pictures count as classes. Each file
    becomes a picture, or is skipped with a reason. Raises ValueError: encrypted, unsafe paths, over
    a limit, or no picture.
    """
    encoding = _name_entries(archive, choices.encoding)
    report.read_as = ReadAs(encoding)
    kinds = [(_kind_of(name, archive, entry), entry) for entry in archive.infolist()]
    report.accounting = Accounting(system=sum(kind == "system" for kind, _entry in kinds))
    pictures = [entry for kind, entry in kinds if kind == "picture"]
    others = [entry for kind, entry in kinds if kind == "other"]
    link = N_("This is a link to another file.")
    items = [_skipped(entry.filename, link) for kind, entry in kinds if kind == "link"]
    arrays = [
        entry for entry in others if is_array_file(entry.filename, first_bytes(archive, entry))
    ]
    # beside pictures a table lists their names or labels, which are not read
    if arrays and not pictures:
        items += [_skipped(entry.filename, _NO_PICTURES) for entry in others if entry not in arrays]
        _read_arrays(report, items, arrays_in(_unpacked(name, archive, arrays)), form, choices)
        return
    for entry in others:
        begin = first_bytes(archive, entry)
        is_damaged = not begin and entry.file_size
        items.append(_skipped(entry.filename, IS_DAMAGED if is_damaged else why_not(begin)))
    place_of, outer, report.names = _layout_of(map(_folders, pictures), choices.folders)
    report.read_as = ReadAs(encoding, folders=outer)
    good: list[Item] = []
    for entry in pictures:
        place = place_of(_folders(entry))
        if place is None:
            items.append(_skipped(entry.filename, N_("It is not in a class folder.")))
            continue
        read_file = partial(read_member, archive, entry)
        good.append(Item(read_file, place[1], place[0], name=shown(entry.filename)))
    classes = {item.label for item in good}
    _check_labels(len(good), classes, others)
    make_alike(report, name, [*items, *good], form)
    beside = (place_of(_folders(entry)) for kind, entry in kinds if kind in ("folder", "other"))
    empty = dict.fromkeys(place[1] for place in beside if place and place[1] not in classes)
    if empty:
        names = ", ".join(f"“{shown(name)}”" for name in empty)
        words = N_(
            "These folders have no pictures, so they are not classes: {names}.",
            n=len(empty),
            names=names,
        )
        report.findings += (Remark("warning", words),)


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
    is_picture = path.suffix.casefold() in _ENDINGS or looks_like_picture(
        first_bytes(archive, entry)
    )
    return "picture" if is_picture else "other"


def _unpacked(
    name: str, archive: zipfile.ZipFile, entries: Iterable[zipfile.ZipInfo]
) -> list[tuple[str, bytes]]:
    """Return files with their names, within the limit on them all. Raises StudentError."""
    files: list[tuple[str, bytes]] = []
    for entry in entries:
        try:
            files.append((entry.filename, read_member(archive, entry, LIMITS["unpacked"].most)))
        except StudentError as error:
            raise StudentError(
                "{file}: {why}", file=shown(entry.filename), why=error.sentence
            ) from None
        check("unpacked", sum(len(content) for _name, content in files), name=name)
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


def _name_entries(archive: zipfile.ZipFile, encoding: str | None) -> str | None:
    """Give each entry its name, in NFC, with / between folders; it is found by its original one.

    encoding: a key of ``ENCODINGS``, or None to guess. Returns the one used, None where all are
    declared.
    """
    raw_names: list[tuple[zipfile.ZipInfo, bytes | None]] = []
    for entry in archive.infolist():
        read = entry.orig_filename.split("\0")[0]
        is_declared = entry.flag_bits & _UTF_8 or entry.orig_filename.isascii()
        # or an extra field says the name in Unicode, and Python took it
        is_declared = is_declared or entry.filename not in (read, read.replace(os.sep, "/"))
        raw_names.append((entry, None if is_declared else read.encode("cp437")))
    doubtful = [raw for _entry, raw in raw_names if raw is not None]
    used = encoding if encoding in ENCODINGS else likely_encoding(doubtful) or "cp437"
    for entry, raw in raw_names:
        name = entry.filename if raw is None else raw.decode(used, "replace")
        entry.filename = unicodedata.normalize("NFC", name.replace("\\", "/"))
    return used if doubtful else None


Path = tuple[str, ...]
"""Folders from the outermost to the innermost."""

Place = tuple[int | None, str]
"""A split as its place in ``SPLITS``, where one is named, and the folder of a class."""


def _layout_of(
    folders: Iterable[Path], choice: Folders | None
) -> tuple[Callable[[Path], Place | None], Folders | None, tuple[str, ...]]:
    """Return what the folders of pictures mean: where each one belongs, None for in no class.

    Also what the outer folders are taken for, and their names, where they may be splits or classes;
    ``choice`` decides. Raises StudentError where they are splits without classes in them.
    """
    different = {folder for folder in folders if folder}
    wrapper: Path = ()  # folders around all others
    while only := _only(different):
        wrapper += (only,)
        different = _below(different)
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
            return None if part is None else (SPLITS.index(part), rest[0])
        if splits is None:
            return None, rest[0]
        if rest[0] not in splits:
            return None
        named, around = splits[rest[0]]
        rest = _without(rest[1:], around)
        return (SPLITS.index(named), rest[0]) if rest else None

    if not has_inner or (len(kinds) > 1 and are_all):
        return place, None, ()
    return place, outer, tuple(map(shown, names))


def _splits(folders: Collection[Path], parts: Mapping[str, str]) -> dict[str, tuple[str, Path]]:
    """Return the split of each folder, and the folders in it that are around the classes."""
    inner: dict[str, Path] = dict.fromkeys(parts, ())
    below = {name: _below(folder for folder in folders if folder[0] == name) for name in parts}
    for name, part in parts.items():
        while (only := _only(below[name])) and part_of(only) == part:  # seg_train/seg_train/cat
            inner[name] += (only,)
            below[name] = _below(below[name])
    while all(_only(rests) for rests in below.values() if rests):  # train/images/cat
        for name, rests in below.items():
            if only := _only(rests):
                inner[name] += (only,)
                below[name] = _below(rests)
    return {name: (part, inner[name]) for name, part in parts.items()}


def _below(folders: Iterable[Path]) -> set[Path]:
    """Return what is inside the outermost folders."""
    return {folder[1:] for folder in folders if len(folder) > 1}


def _only(rests: Collection[Path]) -> str:
    """Return the first folder if all share it and some have folders below it, else ""."""
    first = {rest[0] for rest in rests}
    return first.pop() if len(first) == 1 and any(len(rest) > 1 for rest in rests) else ""


def _without(folder: Path, outer: Path) -> Path:
    """Return a folder below an outer one, () where it is not below it."""
    return folder[len(outer) :] if folder[: len(outer)] == outer else ()
