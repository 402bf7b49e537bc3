"""Pictures in arrays: IDX files, NumPy archives and tables of pixels, matched with their labels.

NumPy archives are such as Keras' ``mnist.npz`` and those of MedMNIST; pickles are never loaded. A
table has a picture a line and its label in a column, as Kaggle publishes digits.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import re
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfm_core.data.download import MAX_HEADER, SOURCES, idx_shape, idx_size
from tfm_core.data.user_data.pictures import MAX_PIXELS, Grid, class_labels, part_of
from tfm_core.data.user_data.sets import SPLITS
from tfm_core.data.user_data.uploads import (
    LIMITS,
    MAX_FILES,
    ZIP_DAMAGE,
    Item,
    check,
    kept,
    read_each,
    shown,
    skipped,
)
from tfm_core.sentences import N_, Paragraph, StudentError

_GZIP = b"\x1f\x8b"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_BAD_HEADER = (tokenize.TokenError, SyntaxError, TypeError, RecursionError, OverflowError)
_BAD_ARRAY = (*ZIP_DAMAGE, *_BAD_HEADER, RuntimeError, KeyError)
"""What NumPy raises on an array that is damaged or forged."""


class ArrayFile(NamedTuple):
    """A file of pictures, uint8 (N, H, W) or with channels, or of their labels, strings (N,)."""

    name: str
    values: Grid | npt.NDArray[np.str_]


Arrays = tuple[list[Item], list[str]]
"""The pictures of arrays, and notes on them."""


def is_array_file(name: str, content: bytes) -> bool:
    """Return whether a file, or the beginning of it, is IDX or a table of pixels."""
    return content.startswith((b"\0\0", _GZIP)) or _is_table(name, content)


def arrays_in(files: Sequence[tuple[str, bytes]]) -> Arrays:
    """Return what IDX files, or tables of pixels, hold. Raises StudentError."""
    if all(_is_table(name, content) for name, content in files):
        tables = [_table(name, _unpacked(name, content)) for name, content in files]
        items = [item for table in tables for item in table]
        if not kept(items):
            raise StudentError(items[0].reason)
        for split in range(len(SPLITS)):
            names = [table[0].name for table in tables if {split} == {i.split for i in kept(table)}]
            if len(names) > 1:
                raise _no_pair(names)
        return _labelled(items), []
    plain: list[bytes] = []
    for name, content in files:
        plain.append(_unpacked(name, content, n_before=sum(map(len, plain))))
    arrays = [_idx(name, content) for (name, _packed), content in zip(files, plain, strict=True)]
    return _paired(arrays), _compared(plain, arrays)


def _split_of(name: str) -> int:
    """Return the split that the name of a file or its folder says, else training."""
    return SPLITS.index(part_of(name.rpartition("/")[2]) or part_of(name) or SPLITS[0])


def _no_pair(names: Iterable[str]) -> StudentError:
    return StudentError(Paragraph("own-data/two-files", names=", ".join(map(shown, names))))


def _paired(arrays: Sequence[ArrayFile]) -> list[Item]:
    """Return each picture with its label. Raises StudentError that names the file."""
    pairs: list[tuple[int, ArrayFile, ArrayFile]] = []
    for split in range(len(SPLITS)):
        files = [file for file in arrays if _split_of(file.name) == split]
        pictures = [file for file in files if file.values.ndim > 1]
        labels = [file for file in files if file.values.ndim == 1]
        if files and (len(pictures), len(labels)) != (1, 1):
            raise _no_pair(file.name for file in files)
        pairs += [(split, *pair) for pair in zip(pictures, labels, strict=True)]
    for _split, images, labels_of in pairs:
        if len(images.values) != len(labels_of.values):
            raise StudentError(
                "{pictures} has {n_pictures:,} pictures, but {labels} has {n_labels:,} labels.",
                pictures=shown(images.name),
                n_pictures=len(images.values),
                labels=shown(labels_of.name),
                n_labels=len(labels_of.values),
            )
    words = N_("picture {line} of {name}")
    return _labelled(
        Item(image, label, split, line, numbered=words, name=shown(images.name))
        for split, images, labels_of in pairs
        for line, (image, label) in enumerate(
            zip(_grids(images), labels_of.values.tolist(), strict=True), 1
        )
    )


def _labelled(items: Iterable[Item]) -> list[Item]:
    """Return pictures with class names as labels, and with splits where there are several."""
    items = list(items)
    items = [*skipped(items), *sorted(kept(items), key=lambda item: item.split or 0)]
    # before labels are made class names, which takes long for many thousands
    different = sorted({item.label for item in kept(items)})
    check("classes", len(different))
    called = class_labels(different)
    is_split = len({item.split for item in kept(items)}) > 1
    return [
        replace(item, label=called.get(item.label, ""), split=item.split if is_split else None)
        for item in items
    ]


def _grids(file: ArrayFile) -> Grid:
    """Return the pictures of a file, (N, H, W) or (N, H, W, 3)."""
    values = np.asarray(file.values, np.uint8)
    if values.ndim == 2:
        raise _no_pictures(file.name, values.shape)
    if values.ndim == 3:
        return values
    # channels first, as PyTorch has them
    if values.shape[1] == 3 and values.shape[3] != 3:
        values = values.transpose(0, 2, 3, 1)
    if values.shape[3] not in (1, 3):
        raise StudentError(
            "{name} has pictures of shape {shape}; use 1 or 3 channels.",
            name=shown(file.name),
            shape=_sizes(values.shape[1:]),
        )
    return values[..., 0] if values.shape[3] == 1 else values


def _no_pictures(name: str, shape: Iterable[int]) -> StudentError:
    return StudentError(Paragraph("own-data/array-shape", name=shown(name), shape=_sizes(shape)))


def _sizes(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


def _unpacked(name: str, content: bytes, *, n_before: int = 0) -> bytes:
    """Return a file decompressed, within the limit for it and ``n_before`` bytes of others."""
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            plain = file.read(max(0, LIMITS["gzip"].most - n_before) + 1)
    except (OSError, EOFError, zlib.error):
        raise StudentError(
            "{name} is damaged. Upload it again, or unpacked.", name=shown(name)
        ) from None
    check("gzip", n_before + len(plain), name=shown(name))
    return plain


# IDX


def _idx(name: str, plain: bytes) -> ArrayFile:
    try:
        shape = idx_shape(plain[:MAX_HEADER])
    except StudentError as error:
        raise StudentError(
            "{name}: {why} Pictures start with bytes 0 0 8 3, labels with 0 0 8 1.",
            name=shown(name),
            why=error.sentence,
        ) from None
    right = idx_size(shape)
    if len(plain) != right:
        raise StudentError(
            "{name} should have {right:,} bytes for {shape}, but has {n:,}.",
            name=shown(name),
            shape=_sizes(shape),
            right=right,
            n=len(plain),
        )
    if not all(shape):
        raise StudentError("{name} is empty.", name=shown(name))
    check("array", shape[0], name=shown(name), shape=_sizes(shape))
    values = np.frombuffer(plain, np.uint8, offset=right - math.prod(shape)).reshape(shape)
    return ArrayFile(name, values.astype(np.str_) if values.ndim == 1 else values)


def _compared(contents: Sequence[bytes], arrays: Sequence[ArrayFile]) -> list[str]:
    """Return notes on files named like MNIST's: whether they are the official ones."""
    official = SOURCES["mnist"].unpacked
    notes: list[str] = []
    same: list[str] = []
    for content, file in zip(contents, arrays, strict=True):
        called = shown(file.name)
        name = called.removesuffix(".gz").replace(".idx", "-idx")
        if name not in official:
            continue
        if hashlib.md5(content, usedforsecurity=False).hexdigest() == official[name]:
            same.append(called)
        else:
            notes.append(
                N_(
                    "{name} is named like an MNIST file, but differs ({shape}).",
                    name=called,
                    shape=_sizes(file.values.shape),
                )
            )
    if same:
        notes.append(N_("MNIST’s own files: {names}.", names=", ".join(same)))
    return notes


# NumPy archives


def arrays_in_npz(name: str, archive: zipfile.ZipFile) -> Arrays:
    """Return arrays such as ``x_train``, ``y_train``, ``x_test`` and ``y_test``.

    Sizes are checked before anything is unpacked. Raises StudentError.
    """
    files: list[ArrayFile] = []
    others: list[Item] = []
    scaled: list[str] = []
    check("arrays", len(archive.infolist()), name=shown(name))
    arrays: list[tuple[str, npt.NDArray[Any]]] = []
    for entry in archive.infolist():
        called = entry.filename.removesuffix(".npy")
        n_before = sum(array.nbytes for _name, array in arrays)
        arrays.append((called, _array(archive, entry, f"{name}: {called}", n_before)))
    for called, array in arrays:
        values = _values(called, array)
        if values is None:
            shape = _sizes(array.shape) or "1"
            why = N_("An array of shape {shape} holds no pictures or labels.", shape=shape)
            others.append(Item(name=shown(called), why=why))
            continue
        files.append(ArrayFile(called, values))
        if array.ndim in (3, 4) and array.dtype.kind in "bf" and _is_fraction(array):
            scaled.append(shown(called))
    if not files:
        raise StudentError(
            "{name} needs arrays such as x_train (N, height, width) and y_train (N).",
            name=shown(name),
        )
    words = N_("Values from 0 to 1 were scaled to 255: {names}.", names=", ".join(scaled))
    return [*others, *_paired(files)], [words] if scaled else []


def _array(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, n_before: int
) -> npt.NDArray[Any]:
    """Return one array, within the limit for it and ``n_before`` bytes. Raises StudentError."""
    name = shown(name)
    try:
        with archive.open(entry) as file:
            version = np.lib.format.read_magic(file)
            shape, _is_fortran, dtype = _HEADERS[version](file)
        # only the header is read by now: NumPy would allocate whatever size a forged one says
        if dtype.hasobject:
            raise StudentError(
                "{name} holds Python objects, which are never loaded. Save numbers.", name=name
            )
        check("array", max(shape, default=0), name=name, shape=_sizes(shape))
        check("npz", n_before + math.prod(shape) * dtype.itemsize, name=name)
        with archive.open(entry) as file:
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array
    except StudentError:
        raise
    except _BAD_ARRAY:
        raise StudentError(
            "{name} is damaged, encrypted or not a NumPy array.", name=name
        ) from None


def _values(name: str, array: npt.NDArray[Any]) -> Grid | npt.NDArray[np.str_] | None:
    """Return an array as pictures or labels, None where it is neither. Raises StudentError."""
    if array.ndim == 2 and array.shape[1] == 1:  # MedMNIST's labels
        array = array[:, 0]
    kind = array.dtype.kind
    if array.ndim == 2:
        raise _no_pictures(name, array.shape)
    if not array.size:
        return None
    if array.ndim == 1 and kind == "U":
        return array
    is_whole = kind in "bf" and bool((np.isfinite(array) & (array == np.floor(array))).all())
    if array.ndim == 1 and (kind in "iu" or is_whole):
        return array.astype(np.int64).astype(np.str_)
    if array.ndim not in (3, 4) or kind not in "biuf":
        return None
    if array.dtype == np.uint8:
        return array
    if _is_fraction(array):
        return (array.astype(np.float32) * 255).round().astype(np.uint8)
    if not (array.min() >= 0 and array.max() <= 255):  # not a number, too
        raise StudentError(
            "{name} has values from {low} to {high}. Use 0 to 255, or 0 to 1.",
            name=shown(name),
            low=f"{array.min():g}",
            high=f"{array.max():g}",
        )
    return array.round().astype(np.uint8)


def _is_fraction(array: npt.NDArray[Any]) -> bool:
    """Return whether the values are brightness from 0 to 1."""
    return array.dtype.kind == "b" or (
        array.dtype.kind == "f" and bool(array.min() >= 0) and bool(array.max() <= 1)
    )


# Tables

_LABELS = ("label", "labels", "class", "target", "y", "digit", "letter")
_NUMBERED = ("", "id", "index", "imageid", "unnamed: 0")  # columns that only count the lines
_NUMBER = rb"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?"
_MIN_COLUMNS = 17
_MAX_FIRST_LINE = 4096
_BLANK = b'" \t'  # what may stand around a cell


def _is_table(name: str, content: bytes) -> bool:
    """Return whether a file, or the beginning of it, is a table with a picture in each line."""
    if not re.search(r"\.csv(\.gz)?$", name, re.IGNORECASE):
        return False
    # of a packed one only the name can tell; its lines are checked when they are unpacked
    first = content[:_MAX_FIRST_LINE].split(b"\n", 1)[0]
    return content.startswith(_GZIP) or first.count(b",") >= _MIN_COLUMNS - 1


def _table(name: str, content: bytes) -> list[Item]:
    """Return the pictures of the lines of a table."""
    called, split = shown(name), _split_of(name)
    lines = _lines(called, content.removeprefix(b"\xef\xbb\xbf"))
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    first = [cell.strip(_BLANK) for cell in lines[numbers[0] - 1].split(b",")] if numbers else []
    # a header has a cell that is no number
    has_header = not all(re.fullmatch(_NUMBER, cell) for cell in first)
    numbers = numbers[has_header:]
    if not numbers:
        raise StudentError("{name} has no lines with pictures.", name=called)
    header = [cell.decode(errors="replace").casefold() for cell in first]
    label = 0 if math.isqrt(len(header)) ** 2 != len(header) else None  # first, as in EMNIST
    if has_header:
        label = next((at for at, cell in enumerate(header) if cell in _LABELS), None)
    if label is None:
        why = N_(
            "No column “label” for {n:,} pictures. For Kaggle's digits use train.csv.",
            n=len(numbers),
        )
        return [Item(name=called, n_lines=len(numbers), why=why)]
    pixels = [at for at in range(len(header)) if at != label]
    if has_header:
        pixels = [at for at in pixels if header[at] not in _NUMBERED]
    side = math.isqrt(len(pixels))
    if side * side != len(pixels):
        raise StudentError(
            "{name} has {n:,} pixel columns, which is not a square number; 28 x 28 is 784.",
            name=called,
            n=len(pixels),
        )
    most = min(LIMITS["lines"].most, MAX_PIXELS // len(pixels))
    check("lines", len(numbers), most=most, name=called)

    def read(item: Item) -> Item:
        n = item.content.count(b",") + 1
        if n != len(first):
            words = N_("There are {n:,} cells instead of {right:,}.")
            raise StudentError(words, n=n, right=len(first))
        values = _pixels(item.content, pixels).reshape(side, side)
        cell = item.content.split(b",", label + 1)[label].strip(_BLANK).decode(errors="replace")
        if not cell:
            raise StudentError("There is no label.")
        text = re.sub(r"^(\d+)\.0+$", r"\1", cell)  # 3.0 is 3
        return replace(item, content=values, label=text)

    words = N_("line {line} of {name}")
    rows = (Item(lines[n - 1], "", split, n, numbered=words, name=called) for n in numbers)
    items = read_each(rows, read)
    if not kept(items):
        reason = items[0].reason
        raise StudentError("{name} has no readable picture. {first}", name=called, first=reason)
    return items


def _lines(name: str, content: bytes) -> list[bytes]:
    """Return the lines of a table. Raises StudentError for more than are taken apart."""
    n_ends = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    if n_ends > MAX_FILES:
        check("lines", n_ends, name=name)
    lines = content.splitlines()
    check("cells", 1 + max((line.count(b",") for line in lines), default=0), name=name)
    return lines


def _pixels(row: bytes, columns: Sequence[int]) -> Grid:
    """Return the pixels of a row, (N,). Raises StudentError."""
    values = np.array(-1.0)
    # some write whole numbers as fractions, which take twice as long to read
    for kind in (np.int16, np.float64):
        with suppress(ValueError):
            values = np.loadtxt(
                [row], kind, comments=None, delimiter=",", usecols=columns, quotechar='"', ndmin=1
            )
            break
    if not ((values == np.floor(values)) & (values >= 0) & (values <= 255)).all():
        raise StudentError("A pixel is not a whole number from 0 to 255.")
    return values.astype(np.uint8)
