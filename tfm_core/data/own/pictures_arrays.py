"""Pictures in arrays: IDX files and NumPy archives, matched with their labels and read.

NumPy archives are such as Keras' ``mnist.npz`` and those of MedMNIST; pickles are never loaded.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from tfm_core.data.download import SOURCES
from tfm_core.data.idx import MAX_HEADER, idx_header
from tfm_core.data.own.pictures import (
    GUESSED,
    MAX_FILES,
    MAX_PICTURES,
    MAX_UNPACKED,
    PARTS,
    ZIP_DAMAGE,
    Grid,
    LeftOut,
    Part,
    PictureForm,
    Pictures,
    ReadingChoices,
    as_square,
    check_classes,
    check_n_pictures,
    class_labels,
    class_order,
    notes_on,
    part_of,
    shown,
)
from tfm_core.reading import zip_of
from tfm_core.sentences import N_, Paragraph, StudentError


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFile:
    """A file of pictures, uint8 (N, H, W) or with channels, or of their labels, strings (N,).

    part: the split that its name says, else "train". lines: where each picture stands in a table.
    """

    name: str
    part: Part
    values: npt.NDArray[np.uint8] | npt.NDArray[np.str_]
    lines: npt.NDArray[np.int64] | None = None

    @property
    def holds_labels(self) -> bool:
        """Whether these are labels."""
        return self.values.ndim == 1


def part_of_file(name: str) -> Part:
    """Return the split in a file's or its folder's name, "train" without any."""
    return part_of(name.rpartition("/")[2]) or part_of(name) or "train"


def read_arrays(
    arrays: Sequence[ArrayFile],
    form: PictureForm,
    choices: ReadingChoices,
    left_out: LeftOut,
    notes: Sequence[str],
) -> Pictures:
    """Read pictures and their labels; the split comes from train, test or valid in the names.

    Raises ValueError that names the file.
    """
    pairs = _pairs(arrays)
    check_n_pictures(sum(len(pictures.values) for pictures, _labels in pairs), form)
    done: Counter[str] = Counter()
    is_turned = choices.is_turned
    if is_turned is None:  # EMNIST is published with rows and columns swapped
        is_turned = any("emnist" in one.name.casefold() for one in arrays)
    images = np.concatenate([_alike(pictures, form, done) for pictures, _labels in pairs])
    if is_turned:
        images = np.ascontiguousarray(images.swapaxes(2, 3))
    folders = np.concatenate([labels.values for _pictures, labels in pairs])
    different, places = np.unique(folders, return_inverse=True)
    check_classes(len(different))
    called = class_labels(different.tolist())
    class_names = class_order(list(called.values()))
    order = np.array([class_names.index(called[one]) for one in different.tolist()], np.int64)
    parts = [np.full(len(labels.values), PARTS.index(labels.part)) for _pictures, labels in pairs]
    transposed = N_("Transposed: {n:,} pictures.", n=len(images))
    return Pictures(
        images,
        order[places],
        class_names,
        tuple(name for pictures, _labels in pairs for name in _names(pictures)),
        np.concatenate(parts).astype(np.int8) if len(pairs) > 1 else None,
        tuple(left_out.sentences),
        left_out.n,
        notes=(*notes, *notes_on(done, len(images), form), *([transposed] if is_turned else [])),
        understood=ReadingChoices(is_turned=is_turned),
    )


def _names(file: ArrayFile) -> Iterator[str]:
    if file.lines is None:
        for n in range(1, len(file.values) + 1):
            yield N_("picture {n} of {name}", n=n, name=file.name)
    else:
        for n in file.lines.tolist():
            yield N_("line {n} of {name}", n=n, name=file.name)


def _pairs(files: Sequence[ArrayFile]) -> list[tuple[ArrayFile, ArrayFile]]:
    """Return pictures and labels of each split."""
    pairs = []
    for part in PARTS:
        of_part = [file for file in files if file.part == part]
        pictures = [file for file in of_part if not file.holds_labels]
        labels = [file for file in of_part if file.holds_labels]
        if not of_part:
            continue
        if len(pictures) != 1 or len(labels) != 1:
            raise StudentError(
                Paragraph("own-data/two-files", names=", ".join(file.name for file in of_part))
            )
        if len(pictures[0].values) != len(labels[0].values):
            raise StudentError(
                "{pictures} has {n_pictures:,} pictures, but {labels} has {n_labels:,} labels.",
                pictures=pictures[0].name,
                n_pictures=len(pictures[0].values),
                labels=labels[0].name,
                n_labels=len(labels[0].values),
            )
        pairs.append((pictures[0], labels[0]))
    return pairs


def _alike(file: ArrayFile, form: PictureForm, done: Counter[str]) -> Grid:
    """Return the pictures of a file in the form, uint8 (N, C, size, size)."""
    values = np.asarray(file.values, np.uint8)
    if values.ndim == 2:
        raise StudentError(
            Paragraph("own-data/array-shape", name=file.name, shape=_sizes(values.shape))
        )
    if values.ndim == 4:
        if values.shape[1] == 3 and values.shape[3] != 3:
            values = values.transpose(0, 2, 3, 1)
        if values.shape[3] not in (1, 3):
            raise StudentError(
                "{name} has pictures of shape {shape}; use 1 or 3 channels.",
                name=file.name,
                shape=_sizes(values.shape[1:]),
            )
        values = values[..., 0] if values.shape[3] == 1 else values
    if form.is_grey and values.shape[1:] == (form.size, form.size):
        return values[:, None].copy()
    return np.stack([as_square(Image.fromarray(one), form, done) for one in values])


def _sizes(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


_GZIP = b"\x1f\x8b"


def is_idx(content: bytes) -> bool:
    """Return whether a file begins like IDX, or is packed and may be."""
    return content.startswith((b"\0\0", _GZIP))


def idx_arrays(files: Sequence[tuple[str, bytes]]) -> tuple[list[ArrayFile], list[str]]:
    """Return IDX files as arrays, and notes on those named like MNIST's.

    Raises ValueError that names the file.
    """
    contents: list[bytes] = []
    for name, content in files:
        contents.append(unpacked(name, content, MAX_UNPACKED - sum(map(len, contents))))
    arrays = [_idx_array(name, content) for (name, _), content in zip(files, contents, strict=True)]
    return arrays, _compared(contents, arrays)


def _idx_array(name: str, plain: bytes) -> ArrayFile:
    try:
        header = idx_header(plain[:MAX_HEADER])
    except StudentError as error:
        raise StudentError(
            "{name}: {why} Pictures start with bytes 0 0 8 3, labels with 0 0 8 1.",
            name=shown(name),
            why=error.sentence,
        ) from None
    if len(plain) != header.n_bytes:
        raise StudentError(
            "{name} should have {right:,} bytes for {shape}, but has {n:,}.",
            name=shown(name),
            shape=_sizes(header.shape),
            right=header.n_bytes,
            n=len(plain),
        )
    if not all(header.shape):
        raise StudentError("{name} is empty.", name=shown(name))
    if header.shape[0] > MAX_PICTURES:
        raise StudentError(
            "{name} has the shape {shape}; the limit is {most:,} pictures.",
            name=shown(name),
            shape=_sizes(header.shape),
            most=MAX_PICTURES,
        )
    values = np.frombuffer(plain, np.uint8, offset=header.n_header).reshape(header.shape)
    array = values.astype(np.str_) if values.ndim == 1 else values
    return ArrayFile(shown(name), part_of_file(name), array)


def unpacked(name: str, content: bytes, room: int) -> bytes:
    """Return a file decompressed, up to ``room`` bytes."""
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            plain = file.read(max(0, room) + 1)
    except (OSError, EOFError, zlib.error):
        raise StudentError(
            "{name} is damaged. Upload it again, or unpacked.", name=shown(name)
        ) from None
    if len(plain) > room:
        raise StudentError(
            "{name} unpacks to more than {most} MB.", name=shown(name), most=MAX_UNPACKED // 10**6
        )
    return plain


def _compared(contents: Sequence[bytes], arrays: Sequence[ArrayFile]) -> list[str]:
    """Return notes on files named like MNIST's: whether they are the official ones."""
    official = SOURCES["mnist"].unpacked
    notes: list[str] = []
    same: list[str] = []
    for content, file in zip(contents, arrays, strict=True):
        name = file.name.removesuffix(".gz").replace(".idx", "-idx")
        if name not in official:
            continue
        if hashlib.md5(content, usedforsecurity=False).hexdigest() == official[name]:
            same.append(file.name)
        else:
            notes.append(
                N_(
                    "{name} is named like an MNIST file, but differs ({shape}).",
                    name=file.name,
                    shape=_sizes(file.values.shape),
                )
            )
    if same:
        notes.append(N_("MNIST’s own files: {names}.", names=", ".join(same)))
    return notes


_BAD_HEADER = (tokenize.TokenError, SyntaxError, TypeError, RecursionError, OverflowError)
"""What NumPy raises, beside ValueError, on a header that is damaged or forged."""

_MAX_ARRAYS = 12
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def is_npz(content: bytes) -> bool:
    """Return whether a zip holds arrays and nothing else."""
    try:
        with zip_of(content, most=MAX_FILES) as archive:
            names = archive.namelist()
    except ZIP_DAMAGE:
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_npz(
    name: str, content: bytes, form: PictureForm, choices: ReadingChoices = GUESSED
) -> Pictures:
    """Read arrays such as ``x_train``, ``y_train``, ``x_test`` and ``y_test``.

    Sizes are checked before anything is unpacked. Raises ValueError.
    """
    arrays: list[tuple[str, npt.NDArray[Any]]] = []
    with zip_of(content, most=MAX_FILES) as archive:
        entries = archive.infolist()
        if len(entries) > _MAX_ARRAYS:
            raise StudentError(
                "{name} has {n} arrays; the limit is {most}.",
                name=shown(name),
                n=len(entries),
                most=_MAX_ARRAYS,
            )
        room = MAX_UNPACKED
        for entry in entries:
            called = entry.filename.removesuffix(".npy")
            array = _array(archive, entry, f"{name}: {called}", room)
            room -= array.nbytes
            arrays.append((called, array))
    left_out = LeftOut()
    files = [
        file
        for called, array in arrays
        if (file := _npz_array(called, array, left_out)) is not None
    ]
    if not files:
        raise StudentError(
            "{name} needs arrays such as x_train (N, height, width) and y_train (N).",
            name=shown(name),
        )
    return read_arrays(files, form, choices, left_out, _scaled(arrays))


def _array(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, room: int
) -> npt.NDArray[Any]:
    """Return one array of at most ``room`` bytes. Raises StudentError."""
    try:
        with archive.open(entry) as file:
            version = np.lib.format.read_magic(file)
            shape, _is_fortran, dtype = _HEADERS[version](file)
    except (*ZIP_DAMAGE, *_BAD_HEADER, RuntimeError, KeyError):
        raise StudentError(_UNREADABLE, name=shown(name)) from None
    if dtype.hasobject:
        raise StudentError(
            "{name} holds Python objects, which are never loaded. Save numbers.", name=shown(name)
        )
    if shape and max(shape) > MAX_PICTURES:
        raise StudentError(
            "{name} has the shape {shape}; the limit is {most:,} pictures.",
            name=shown(name),
            shape=_sizes(shape),
            most=MAX_PICTURES,
        )
    if math.prod(shape) * dtype.itemsize > room:
        raise StudentError(
            "With {name} the arrays unpack to more than {most} MB.",
            name=shown(name),
            most=MAX_UNPACKED // 10**6,
        )
    try:
        with archive.open(entry) as file:
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except (*ZIP_DAMAGE, *_BAD_HEADER, RuntimeError):
        raise StudentError(_UNREADABLE, name=shown(name)) from None
    return array


_UNREADABLE = N_("{name} is damaged, encrypted or not a NumPy array.")


def _npz_array(name: str, array: npt.NDArray[Any], left_out: LeftOut) -> ArrayFile | None:
    """Return an array as pictures or labels; any other is noted as skipped."""
    part, called = part_of_file(name), shown(name)
    if array.ndim == 2 and array.shape[1] == 1:  # MedMNIST's labels
        array = array[:, 0]
    shape = _sizes(array.shape) or "1"
    if array.ndim == 1 and array.size and (array.dtype.kind in "iuU" or _is_whole(array)):
        whole = array if array.dtype.kind == "U" else array.astype(np.int64)
        return ArrayFile(called, part, whole.astype(np.str_))
    if array.ndim in (3, 4) and array.size and array.dtype.kind in "biuf":
        return ArrayFile(called, part, _as_bytes(called, array))
    if array.ndim == 2:
        raise StudentError(Paragraph("own-data/array-shape", name=called, shape=shape))
    left_out.add(name, N_("An array of shape {shape} holds no pictures or labels.", shape=shape))
    return None


def _is_whole(array: npt.NDArray[Any]) -> bool:
    kind = array.dtype.kind
    return kind in "bf" and bool((np.isfinite(array) & (array == np.floor(array))).all())


def _is_fraction(array: npt.NDArray[Any]) -> bool:
    """Return whether the values are brightness from 0 to 1."""
    return array.dtype.kind == "b" or (
        array.dtype.kind == "f" and bool(array.min() >= 0) and bool(array.max() <= 1)
    )


def _as_bytes(name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return pictures as whole numbers from 0 to 255. Raises StudentError."""
    if array.dtype == np.uint8:
        return array
    if _is_fraction(array):
        return (array.astype(np.float32) * 255).round().astype(np.uint8)
    if not (array.min() >= 0 and array.max() <= 255):  # not a number, too
        raise StudentError(
            "{name} has values from {low} to {high}. Use 0 to 255, or 0 to 1.",
            name=name,
            low=f"{array.min():g}",
            high=f"{array.max():g}",
        )
    return array.round().astype(np.uint8)


def _scaled(arrays: Sequence[tuple[str, npt.NDArray[Any]]]) -> list[str]:
    """Return a note on pictures with values from 0 to 1."""
    names = [
        shown(name)
        for name, array in arrays
        if array.ndim in (3, 4) and array.size and array.dtype.kind in "bf" and _is_fraction(array)
    ]
    words = N_("Values from 0 to 1 were scaled to 255: {names}.", names=", ".join(names))
    return [words] if names else []
