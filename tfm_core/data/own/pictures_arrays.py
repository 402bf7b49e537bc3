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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.data.download import SOURCES
from tfm_core.data.idx import MAX_HEADER, idx_header
from tfm_core.data.own.containers import ZIP_DAMAGE, shown
from tfm_core.data.own.pictures import (
    MAX_FILES,
    MAX_PICTURES,
    MAX_PIXELS,
    MAX_UNPACKED,
    PARTS,
    Grid,
    LeftOut,
    PictureItem,
    check_classes,
    class_labels,
    part_of,
)
from tfm_core.reading import zip_of
from tfm_core.sentences import N_, Paragraph, StudentError

_GZIP = b"\x1f\x8b"
_MAX_ARRAYS = 12
_MAX_COLUMNS = 2**20
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_BAD_HEADER = (tokenize.TokenError, SyntaxError, TypeError, RecursionError, OverflowError)
_BAD_ARRAY = (*ZIP_DAMAGE, *_BAD_HEADER, RuntimeError, KeyError)
"""What NumPy raises on an array that is damaged or forged."""
_NUMBER = rb"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?"


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFile:
    """A file of pictures, uint8 (N, H, W) or with channels, or of their labels, strings (N,)."""

    name: str
    values: Grid | npt.NDArray[np.str_]
    lines: Sequence[int] = ()  # where each picture stands in a table

    @property
    def part(self) -> int:
        """The split that the name of the file or its folder says, else training."""
        return PARTS.index(part_of(self.name.rpartition("/")[2]) or part_of(self.name) or "train")


def is_array_file(name: str, content: bytes) -> bool:
    """Return whether a file, or the beginning of it, is IDX or a table of pixels."""
    return content.startswith((b"\0\0", _GZIP)) or _is_table(name, content)


def arrays_in(
    files: Sequence[tuple[str, bytes]], left_out: LeftOut
) -> tuple[list[ArrayFile], list[str]]:
    """Return what IDX files, or tables of pixels, hold, and notes. Raises StudentError."""
    are_tables = all(_is_table(name, content) for name, content in files)
    plain: list[bytes] = []
    arrays: list[ArrayFile] = []
    for name, content in files:
        plain.append(_unpacked(name, content, MAX_UNPACKED - sum(map(len, plain))))
        if are_tables:
            arrays += _table(name, plain.pop(), left_out)
    if are_tables and not arrays:
        raise StudentError(left_out.sentences[0])
    if are_tables:
        return arrays, []
    arrays = [_idx(name, content) for (name, _packed), content in zip(files, plain, strict=True)]
    return arrays, _compared(plain, arrays)


def items_of(arrays: Sequence[ArrayFile]) -> list[PictureItem]:
    """Return each picture with its label; the split comes from train, test or valid in the names.

    Raises StudentError that names the file.
    """
    pairs: list[tuple[int, ArrayFile, ArrayFile]] = []
    for part in range(len(PARTS)):
        files = [file for file in arrays if file.part == part]
        pictures = [file for file in files if file.values.ndim > 1]
        labels = [file for file in files if file.values.ndim == 1]
        if files and (len(pictures), len(labels)) != (1, 1):
            names = ", ".join(shown(file.name) for file in files)
            raise StudentError(Paragraph("own-data/two-files", names=names))
        for pictures_of, labels_of in zip(pictures, labels, strict=True):
            if len(pictures_of.values) != len(labels_of.values):
                raise StudentError(
                    "{pictures} has {n_pictures:,} pictures, but {labels} has {n_labels:,} labels.",
                    pictures=shown(pictures_of.name),
                    n_pictures=len(pictures_of.values),
                    labels=shown(labels_of.name),
                    n_labels=len(labels_of.values),
                )
            pairs.append((part, pictures_of, labels_of))
    # before labels are made class names, which takes long for many thousands
    different = sorted({label for _part, _file, file in pairs for label in file.values.tolist()})
    check_classes(len(different))
    called = class_labels(different)
    return [
        PictureItem(image, called[label], part if len(pairs) > 1 else None, place)
        for part, pictures_of, labels_of in pairs
        for image, label, place in zip(
            _grids(pictures_of), labels_of.values.tolist(), _places(pictures_of), strict=True
        )
    ]


def _places(file: ArrayFile) -> Iterator[str]:
    words = N_("line {n} of {name}") if file.lines else N_("picture {n} of {name}")
    for n in file.lines or range(1, len(file.values) + 1):
        yield N_(words, n=n, name=shown(file.name))


def _grids(file: ArrayFile) -> Grid:
    """Return the pictures of a file, (N, H, W) or (N, H, W, 3)."""
    values = np.asarray(file.values, np.uint8)
    if values.ndim == 2:
        raise _no_pictures(file.name, values.shape)
    if values.ndim == 4:
        # channels first, as PyTorch has them
        if values.shape[1] == 3 and values.shape[3] != 3:
            values = values.transpose(0, 2, 3, 1)
        if values.shape[3] not in (1, 3):
            raise StudentError(
                "{name} has pictures of shape {shape}; use 1 or 3 channels.",
                name=shown(file.name),
                shape=_sizes(values.shape[1:]),
            )
        values = values[..., 0] if values.shape[3] == 1 else values
    return values


def _no_pictures(name: str, shape: Iterable[int]) -> StudentError:
    return StudentError(Paragraph("own-data/array-shape", name=shown(name), shape=_sizes(shape)))


def _sizes(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


def _check_number(name: str, shape: Sequence[int], n: int) -> None:
    if n > MAX_PICTURES:
        raise StudentError(
            "{name} has the shape {shape}; the limit is {most:,} pictures.",
            name=shown(name),
            shape=_sizes(shape),
            most=MAX_PICTURES,
        )


def _unpacked(name: str, content: bytes, room: int) -> bytes:
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


# IDX


def _idx(name: str, plain: bytes) -> ArrayFile:
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
    _check_number(name, header.shape, header.shape[0])
    values = np.frombuffer(plain, np.uint8, offset=header.n_header).reshape(header.shape)
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


def is_npz(content: bytes) -> bool:
    """Return whether a zip holds arrays and nothing else."""
    try:
        with zip_of(content, most=MAX_FILES) as archive:
            names = archive.namelist()
    except ZIP_DAMAGE:
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def arrays_in_npz(
    name: str, content: bytes, left_out: LeftOut
) -> tuple[list[ArrayFile], list[str]]:
    """Return arrays such as ``x_train``, ``y_train``, ``x_test`` and ``y_test``, and notes.

    Sizes are checked before anything is unpacked. Raises StudentError.
    """
    files: list[ArrayFile] = []
    scaled: list[str] = []
    with zip_of(content, most=MAX_FILES) as archive:
        entries = archive.infolist()
        if len(entries) > _MAX_ARRAYS:
            raise StudentError(
                "{name} has {n} arrays; the limit is {most}.",
                name=shown(name),
                n=len(entries),
                most=_MAX_ARRAYS,
            )
        arrays: list[tuple[str, npt.NDArray[Any]]] = []
        for entry in entries:
            called = entry.filename.removesuffix(".npy")
            room = MAX_UNPACKED - sum(array.nbytes for _name, array in arrays)
            arrays.append((called, _array(archive, entry, f"{name}: {called}", room)))
    for called, array in arrays:
        values = _values(called, array)
        if values is None:
            shape = _sizes(array.shape) or "1"
            why = N_("An array of shape {shape} holds no pictures or labels.", shape=shape)
            left_out.add(called, why)
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
    return files, [words] if scaled else []


def _array(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, room: int
) -> npt.NDArray[Any]:
    """Return one array of at most ``room`` bytes. Raises StudentError."""
    try:
        with archive.open(entry) as file:
            version = np.lib.format.read_magic(file)
            shape, _is_fortran, dtype = _HEADERS[version](file)
        # only the header is read by now: NumPy would allocate whatever size a forged one says
        if dtype.hasobject:
            raise StudentError(
                "{name} holds Python objects, which are never loaded. Save numbers.",
                name=shown(name),
            )
        _check_number(name, shape, max(shape, default=0))
        if math.prod(shape) * dtype.itemsize > room:
            raise StudentError(
                "With {name} the arrays unpack to more than {most} MB.",
                name=shown(name),
                most=MAX_UNPACKED // 10**6,
            )
        with archive.open(entry) as file:
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except StudentError:
        raise
    except _BAD_ARRAY:
        raise StudentError(
            "{name} is damaged, encrypted or not a NumPy array.", name=shown(name)
        ) from None
    return array


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
_MIN_COLUMNS = 17
_MAX_FIRST_LINE = 4096


def _is_table(name: str, content: bytes) -> bool:
    """Return whether a file, or the beginning of it, is a table with a picture in each line."""
    if not re.search(r"\.csv(\.gz)?$", name, re.IGNORECASE):
        return False
    # of a packed one only the name can tell; its lines are checked when they are unpacked
    first = content[:_MAX_FIRST_LINE].split(b"\n", 1)[0]
    return content.startswith(_GZIP) or first.count(b",") >= _MIN_COLUMNS - 1


def _table(name: str, content: bytes, left_out: LeftOut) -> list[ArrayFile]:
    """Return the pictures and labels of a table; bad lines are noted as skipped."""
    called = shown(name)
    lines = _lines(called, content.removeprefix(b"\xef\xbb\xbf"))
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    first = _cells(lines[numbers[0] - 1]) if numbers else []
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
        left_out.add(name, why, n=len(numbers))
        return []
    pixels = [at for at in range(len(header)) if at != label]
    if has_header:
        pixels = [at for at in pixels if header[at] not in _NUMBERED]
    side = math.isqrt(len(pixels))
    if side * side != len(pixels):
        raise StudentError(
            "{name} has {n:,} pixel columns, which make no square; 28 x 28 is 784.",
            name=called,
            n=len(pixels),
        )
    most = min(MAX_PICTURES, MAX_PIXELS // len(pixels))
    _check_lines(called, len(numbers), most, limit=most)
    rows = [lines[number - 1] for number in numbers]
    values, problems = _pixels(rows, len(first), pixels)
    labels = [_label(row, label) for row in rows]
    for at, number in enumerate(numbers):
        if not labels[at]:
            problems[at] = problems[at] or N_("There is no label.")
        if problems[at]:
            left_out.add(N_("line {n} of {name}", n=number, name=called), problems[at])
    good = [at for at, why in enumerate(problems) if not why]
    if not good:
        first_reason = left_out.sentences[0]
        raise StudentError(
            "{name} has no readable picture. {first}", name=called, first=first_reason
        )
    return [
        ArrayFile(name, values[good].reshape(-1, side, side), [numbers[at] for at in good]),
        ArrayFile(name, np.array([labels[at] for at in good], np.str_)),
    ]


def _check_lines(name: str, n: int, most: int, *, limit: int) -> None:
    if n > limit:
        raise StudentError(
            "{name} has {n:,} lines; the limit is {most:,} pictures.", name=name, n=n, most=most
        )


def _lines(name: str, content: bytes) -> list[bytes]:
    """Return the lines of a table. Raises StudentError for more than are taken apart."""
    n_lines = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    _check_lines(name, n_lines, MAX_PICTURES, limit=MAX_FILES)
    lines = content.splitlines()
    if max((line.count(b",") for line in lines), default=0) >= _MAX_COLUMNS:
        raise StudentError(
            "{name} has a line of more than {most:,} cells.", name=name, most=_MAX_COLUMNS
        )
    return lines


def _pixels(rows: Sequence[bytes], n_columns: int, pixels: Sequence[int]) -> tuple[Grid, list[str]]:
    """Return the pixels of each row, (N, pixels), and why a row cannot be read, "" where it can."""
    wrong = N_("A pixel is not a whole number from 0 to 255.")
    # NumPy reads all lines at once, and many times as fast, but says nothing of a single line
    try:
        text = io.BytesIO(b"\n".join(rows))
        fast = np.loadtxt(
            text, np.int16, comments=None, delimiter=",", usecols=pixels, quotechar='"', ndmin=2
        )
        if len(fast) == len(rows) and all(row.count(b",") == n_columns - 1 for row in rows):
            is_wrong = (fast.min(1) < 0) | (fast.max(1) > 255)
            return fast.astype(np.uint8), [wrong if one else "" for one in is_wrong.tolist()]
    except ValueError:
        pass  # some line is broken, or its numbers are written as fractions
    values, problems = np.zeros((len(rows), len(pixels)), np.uint8), [""] * len(rows)
    for at, row in enumerate(rows):
        cells = _cells(row)
        if len(cells) != n_columns:
            problems[at] = N_(
                "There are {n:,} cells instead of {right:,}.", n=len(cells), right=n_columns
            )
            continue
        try:
            read = np.array([float(cells[column]) for column in pixels])
        except ValueError:
            read = np.array([math.nan])
        if ((read >= 0) & (read <= 255) & (read == np.floor(read))).all():
            values[at] = read
        else:
            problems[at] = wrong
    return values, problems


def _cells(row: bytes) -> list[bytes]:
    return [cell.strip(b'" \t') for cell in row.split(b",")]


def _label(row: bytes, column: int) -> str:
    """Return the label of a row; 3.0 is 3."""
    cells = row.split(b",", column + 1)
    text = cells[column].strip(b'" \t').decode(errors="replace") if column < len(cells) else ""
    return re.sub(r"^(\d+)\.0+$", r"\1", text)
