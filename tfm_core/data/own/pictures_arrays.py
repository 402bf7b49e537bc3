"""Pictures in arrays: files of pictures and files of their labels, matched and read.

IDX files, the arrays of an npz and tables of pixels all come here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from tfm_core.data.own.pictures import (
    PARTS,
    Choices,
    Form,
    Grid,
    LeftOut,
    Part,
    Pictures,
    check_classes,
    check_room,
    class_labels,
    class_order,
    notes_on,
    part_of,
    squared,
)
from tfm_core.sentences import N_, StudentError, counted


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
    """Return the split that a file's name says, or a folder's around it; "train" without any."""
    return part_of(name.rpartition("/")[2]) or part_of(name) or "train"


def is_array_file(name: str, content: bytes) -> bool:
    """Say whether a file, or the beginning of it, is IDX (perhaps packed) or a table of pixels."""
    from tfm_core.data.own.pictures_idx import is_idx
    from tfm_core.data.own.pictures_table import is_table

    return is_idx(content) or is_table(name, content)


def read_array_files(
    files: Sequence[tuple[str, bytes]], form: Form, choices: Choices, left_out: LeftOut
) -> Pictures:
    """Read IDX files, or tables of pixels. Raises ValueError, in a sentence that names the file."""
    from tfm_core.data.own.pictures_idx import idx_arrays
    from tfm_core.data.own.pictures_table import is_table, table_arrays

    if all(is_table(name, content) for name, content in files):
        return read_arrays(table_arrays(files, left_out), form, choices, left_out, ())
    arrays, notes = idx_arrays(files)
    return read_arrays(arrays, form, choices, left_out, notes)


def read_arrays(
    arrays: Sequence[ArrayFile],
    form: Form,
    choices: Choices,
    left_out: LeftOut,
    notes: Sequence[str],
) -> Pictures:
    """Read pictures and their labels; names with train, test or valid in them say the split.

    Raises ValueError, in a sentence that names the file.
    """
    pairs = _pairs(arrays)
    check_room(sum(len(pictures.values) for pictures, _labels in pairs), form)
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
    turned = counted(
        "{n:,} picture was transposed.", "{n:,} pictures were transposed.", len(images)
    )
    return Pictures(
        images,
        order[places],
        class_names,
        tuple(name for pictures, _labels in pairs for name in _names(pictures)),
        np.concatenate(parts).astype(np.int8) if len(pairs) > 1 else None,
        tuple(left_out.sentences),
        left_out.n,
        notes=(*notes, *notes_on(done, len(images), form), *([turned] if is_turned else [])),
        understood=Choices(is_turned=is_turned),
    )


def _names(file: ArrayFile) -> Iterator[str]:
    if file.lines is None:
        for n in range(1, len(file.values) + 1):
            yield N_("picture {n} of {name}", n=n, name=file.name)
    else:
        for n in file.lines.tolist():
            yield N_("line {n} of {name}", n=n, name=file.name)


def _pairs(files: Sequence[ArrayFile]) -> list[tuple[ArrayFile, ArrayFile]]:
    """Return pictures beside their labels, of each split that there is."""
    found = []
    for part in PARTS:
        of_part = [file for file in files if file.part == part]
        pictures = [file for file in of_part if not file.holds_labels]
        labels = [file for file in of_part if file.holds_labels]
        if not of_part:
            continue
        if len(pictures) != 1 or len(labels) != 1:
            raise StudentError(
                "{names}: upload one file of pictures and one of labels. With a test, put "
                "“train” and “test” (or “t10k”) in the names.",
                names=", ".join(file.name for file in of_part),
            )
        if len(pictures[0].values) != len(labels[0].values):
            raise StudentError(
                "{pictures} has {n_pictures:,} pictures, but {labels} has {n_labels:,} labels.",
                pictures=pictures[0].name,
                n_pictures=len(pictures[0].values),
                labels=labels[0].name,
                n_labels=len(labels[0].values),
            )
        found.append((pictures[0], labels[0]))
    return found


def _alike(file: ArrayFile, form: Form, done: Counter[str]) -> Grid:
    """Return the pictures of a file in the form, uint8 (N, C, size, size)."""
    values = np.asarray(file.values, np.uint8)
    if values.ndim == 2:
        raise StudentError(
            "{name} has the shape {shape}. Labels have one dimension, pictures three: N, "
            "height, width.",
            name=file.name,
            shape=" x ".join(map(str, values.shape)),
        )
    if values.ndim == 4:
        if values.shape[1] == 3 and values.shape[3] != 3:
            values = values.transpose(0, 2, 3, 1)
        if values.shape[3] not in (1, 3):
            raise StudentError(
                "{name} has pictures of shape {shape}; use 1 or 3 channels.",
                name=file.name,
                shape=" x ".join(map(str, values.shape[1:])),
            )
        values = values[..., 0] if values.shape[3] == 1 else values
    if form.is_grey and values.shape[1:] == (form.size, form.size):
        return values[:, None].copy()
    return np.stack([squared(Image.fromarray(one), form, done) for one in values])
