"""Tables of pixels: a picture a line, its label in a column, as Kaggle publishes digits."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tfm_core.data.own.pictures import (
    MAX_COLUMNS,
    MAX_LINES,
    MAX_PICTURES,
    MAX_PIXELS,
    MAX_UNPACKED,
    LeftOut,
    PictureForm,
    Pictures,
    ReadingChoices,
    shown,
)
from tfm_core.data.own.pictures_arrays import (
    ArrayFile,
    idx_arrays,
    is_idx,
    part_of_file,
    read_arrays,
    unpacked,
)
from tfm_core.sentences import N_, StudentError

_LABELS = ("label", "labels", "class", "target", "y", "digit", "letter")
_NUMBERED = ("", "id", "index", "imageid", "unnamed: 0")  # columns that only count the lines
_MIN_COLUMNS = 17
_MAX_HEADER = 4096
_GZIP = b"\x1f\x8b"


def is_table(name: str, content: bytes) -> bool:
    """Return whether a file, or the beginning of it, is a table with a picture in each line."""
    if not re.search(r"\.csv(\.gz)?$", name, re.IGNORECASE):
        return False
    first = content[:_MAX_HEADER].split(b"\n", 1)[0]
    return content.startswith(_GZIP) or first.count(b",") >= _MIN_COLUMNS - 1


def table_arrays(files: Sequence[tuple[str, bytes]], left_out: LeftOut) -> list[ArrayFile]:
    """Return the pictures and labels of tables; bad lines are noted as skipped.

    Raises ValueError that names the file.
    """
    arrays: list[ArrayFile] = []
    room = MAX_UNPACKED
    for name, content in files:
        plain = unpacked(name, content, room)
        room -= len(plain)
        arrays += _read(name, plain, left_out)
    if not arrays:
        raise StudentError(left_out.sentences[0])
    return arrays


def _read(name: str, content: bytes, left_out: LeftOut) -> list[ArrayFile]:
    lines = _lines(name, content.removeprefix(b"\xef\xbb\xbf"))
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    first = _cells(lines[numbers[0] - 1]) if numbers else []
    has_header = not all(map(_is_number, first))
    numbers = numbers[has_header:]
    if not numbers:
        raise StudentError("{name} has no lines with pictures.", name=shown(name))
    header = [cell.decode(errors="replace").casefold() for cell in first]
    label, pixels = _columns(header, has_header=has_header)
    if label is None:
        left_out.add(
            name,
            N_(
                "No column “label” for {n:,} pictures. For Kaggle's digits use train.csv.",
                n=len(numbers),
            ),
            n=len(numbers),
        )
        return []
    side = math.isqrt(len(pixels))
    if side * side != len(pixels):
        raise StudentError(
            "{name} has {n:,} pixel columns, which make no square; 28 x 28 is 784.",
            name=shown(name),
            n=len(pixels),
        )
    if len(numbers) > (most := min(MAX_PICTURES, MAX_PIXELS // len(pixels))):
        raise StudentError(
            "{name} has {n:,} lines; the limit is {most:,} pictures.",
            name=shown(name),
            n=len(numbers),
            most=most,
        )
    rows = [lines[number - 1] for number in numbers]
    values, problems = _pixels(rows, len(first), pixels)
    labels = [_label(row, label) for row in rows]
    for at, number in enumerate(numbers):
        if not labels[at]:
            problems[at] = problems[at] or N_("There is no label.")
        if problems[at]:
            left_out.add(N_("line {n} of {name}", n=number, name=shown(name)), problems[at])
    good = np.array([not why for why in problems])
    if not good.any():
        raise StudentError(
            "{name} has no readable picture. {first}", name=shown(name), first=left_out.sentences[0]
        )
    part, called = part_of_file(name), shown(name)
    pictures = values[good].reshape(-1, side, side)
    good_labels = [one for one, is_good in zip(labels, good, strict=True) if is_good]
    return [
        ArrayFile(called, part, pictures, lines=np.array(numbers)[good]),
        ArrayFile(called, part, np.array(good_labels, np.str_)),
    ]


def _lines(name: str, content: bytes) -> list[bytes]:
    """Return the lines of a table. Raises StudentError for more than are taken apart."""
    n_lines = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    if n_lines > MAX_LINES:
        raise StudentError(
            "{name} has {n:,} lines; the limit is {most:,} pictures.",
            name=shown(name),
            n=n_lines,
            most=MAX_PICTURES,
        )
    lines = content.splitlines()
    if max((line.count(b",") for line in lines), default=0) >= MAX_COLUMNS:
        raise StudentError(
            "{name} has a line of more than {most:,} cells.", name=shown(name), most=MAX_COLUMNS
        )
    return lines


def _columns(header: Sequence[str], *, has_header: bool) -> tuple[int | None, list[int]]:
    """Return the column of the label, None without one, and those of the pixels."""
    if not has_header:  # the label first, as in EMNIST
        label = 0 if math.isqrt(len(header)) ** 2 != len(header) else None
    else:
        label = next((at for at, cell in enumerate(header) if cell in _LABELS), None)
    others = [at for at in range(len(header)) if at != label]
    if has_header:
        others = [at for at in others if header[at] not in _NUMBERED]
    return label, others


def _pixels(
    rows: Sequence[bytes], n_columns: int, pixels: Sequence[int]
) -> tuple[npt.NDArray[np.uint8], list[str]]:
    """Return the pixels of each row, (N, pixels), and why a row cannot be read, "" where it can."""
    wrong = N_("A pixel is not a whole number from 0 to 255.")
    try:
        text = io.BytesIO(b"\n".join(rows))
        fast = np.loadtxt(
            text, np.int16, comments=None, delimiter=",", usecols=pixels, quotechar='"', ndmin=2
        )
        is_whole = all(row.count(b",") == n_columns - 1 for row in rows)
        if is_whole and len(fast) == len(rows):
            low, high = fast.min(1).tolist(), fast.max(1).tolist()
            problems = [
                wrong if least < 0 or most > 255 else ""
                for least, most in zip(low, high, strict=True)
            ]
            return fast.astype(np.uint8), problems
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
            problems[at] = wrong
            continue
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


def _is_number(cell: bytes) -> bool:
    return re.fullmatch(rb"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", cell) is not None


def is_array_file(name: str, content: bytes) -> bool:
    """Return whether a file, or the beginning of it, is IDX or a table of pixels."""
    return is_idx(content) or is_table(name, content)


def read_array_files(
    files: Sequence[tuple[str, bytes]],
    form: PictureForm,
    choices: ReadingChoices,
    left_out: LeftOut,
) -> Pictures:
    """Read IDX files, or tables of pixels. Raises ValueError that names the file."""
    if all(is_table(name, content) for name, content in files):
        return read_arrays(table_arrays(files, left_out), form, choices, left_out, ())
    arrays, notes = idx_arrays(files)
    return read_arrays(arrays, form, choices, left_out, notes)
