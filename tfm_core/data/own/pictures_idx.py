"""IDX files of any size: pictures and their labels, plain or packed with gzip."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from tfm_core.data.idx import MOST_HEADER, idx_header
from tfm_core.data.own.pictures import (
    MOST_UNPACKED,
    PARTS,
    Form,
    Grid,
    Part,
    Pictures,
    check_room,
    notes_on,
    part_of,
    shown,
    squared,
)
from tfm_core.data.picture_sources import SOURCES
from tfm_core.sentences import N_, StudentError

_GZIP = b"\x1f\x8b"


def is_idx(content: bytes) -> bool:
    """Say whether a file begins like IDX, or is packed and may be."""
    return content.startswith((b"\0\0", _GZIP))


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    """A file that was read: its name, the split it is of, its values, and its checksum."""

    name: str
    part: Part
    values: Grid
    md5: str

    @property
    def holds_labels(self) -> bool:
        return self.values.ndim == 1


def read_idx(files: Sequence[tuple[str, bytes]], form: Form) -> Pictures:
    """Read pictures and their labels; names such as ``train-…`` and ``t10k-…`` say the split.

    Raises ValueError, in a sentence that names the file.
    """
    read = [_file(name, content) for name, content in files]
    pairs = _pairs(read)
    check_room(sum(len(pictures.values) for pictures, _labels in pairs), form)
    done: Counter[str] = Counter()
    images = np.concatenate([_alike(pictures, form, done) for pictures, _labels in pairs])
    numbers = np.concatenate([labels.values for _pictures, labels in pairs])
    present, labels = np.unique(numbers, return_inverse=True)
    named = len(pairs) > 1
    return Pictures(
        images,
        labels.astype(np.int64),
        tuple(str(number) for number in present),
        tuple(
            N_("picture {n} of {name}", n=n, name=pictures.name)
            for pictures, _labels in pairs
            for n in range(1, len(pictures.values) + 1)
        ),
        _part_numbers(pairs) if named else None,
        notes=(*_compared(read), *notes_on(done, len(images), form)),
    )


def _file(name: str, content: bytes) -> _File:
    plain = _plain(name, content)
    try:
        header = idx_header(plain[:MOST_HEADER])
    except StudentError as error:
        raise StudentError(
            "{name} cannot be read: {why}. Pictures begin with 0 0 8 3 and their number, height "
            "and width, labels with 0 0 8 1 and their number.",
            name=shown(name),
            why=error.sentence,
        ) from None
    if len(plain) != header.n_bytes:
        raise StudentError(
            "{name} says that it holds {shape}, which is {right:,} bytes with its beginning, but "
            "it has {n:,}; a part of it is missing, or it is something else.",
            name=shown(name),
            shape=" x ".join(map(str, header.shape)),
            right=header.n_bytes,
            n=len(plain),
        )
    if not all(header.shape):
        raise StudentError("{name} holds nothing: its size is 0.", name=shown(name))
    values = np.frombuffer(plain, np.uint8, offset=header.n_header).reshape(header.shape)
    md5 = hashlib.md5(plain, usedforsecurity=False).hexdigest()
    return _File(shown(name), part_of(name) or "train", values, md5)


def _plain(name: str, content: bytes) -> bytes:
    """Return a file without its packing, up to a bound."""
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            plain = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error):
        raise StudentError(
            "{name} is damaged: it cannot be unpacked to its end. Take it in again, or unpacked.",
            name=shown(name),
        ) from None
    if len(plain) > MOST_UNPACKED:
        raise StudentError(
            "{name} unpacks to more than {most} MB, which is more than is read.",
            name=shown(name),
            most=MOST_UNPACKED // 10**6,
        )
    return plain


def _pairs(files: Sequence[_File]) -> list[tuple[_File, _File]]:
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
                "{names}: one file of pictures and one of labels make a set; begin their names "
                "with train and t10k where there is a test too.",
                names=", ".join(file.name for file in of_part),
            )
        if len(pictures[0].values) != len(labels[0].values):
            raise StudentError(
                "{pictures} has {n_pictures:,} pictures, but {labels} has {n_labels:,} labels; "
                "each picture needs one.",
                pictures=pictures[0].name,
                n_pictures=len(pictures[0].values),
                labels=labels[0].name,
                n_labels=len(labels[0].values),
            )
        found.append((pictures[0], labels[0]))
    return found


def _part_numbers(pairs: Iterable[tuple[_File, _File]]) -> npt.NDArray[np.int8]:
    return np.concatenate(
        [
            np.full(len(labels.values), PARTS.index(labels.part), np.int8)
            for _pictures, labels in pairs
        ]
    )


def _alike(file: _File, form: Form, done: Counter[str]) -> Grid:
    """Return the pictures of a file in the form, uint8 (N, C, size, size)."""
    values = file.values
    if values.ndim == 2:
        raise StudentError(
            "{name} has two dimensions, {shape}: neither labels (one) nor pictures (three: how "
            "many, height, width).",
            name=file.name,
            shape=" x ".join(map(str, values.shape)),
        )
    if values.ndim == 4:
        if values.shape[1] == 3 and values.shape[3] != 3:
            values = values.transpose(0, 2, 3, 1)
        if values.shape[3] not in (1, 3):
            raise StudentError(
                "{name} has pictures of {shape}; 1 or 3 channels would be right.",
                name=file.name,
                shape=" x ".join(map(str, values.shape[1:])),
            )
        values = values[..., 0] if values.shape[3] == 1 else values
    if form.is_grey and values.shape[1:] == (form.size, form.size):
        return values[:, None].copy()
    return np.stack([squared(Image.fromarray(one), form, done) for one in values])


def _compared(files: Iterable[_File]) -> list[str]:
    """Say where a file has the name of one of MNIST's, and whether it is that one."""
    official = SOURCES["mnist"].unpacked
    notes: list[str] = []
    same: list[str] = []
    for file in files:
        name = re.sub(r"\.gz$", "", file.name).replace(".idx", "-idx")
        if name not in official:
            continue
        if file.md5 == official[name]:
            same.append(file.name)
        else:
            notes.append(
                N_(
                    "{name} is called like a file of MNIST, but its checksum is another one: it "
                    "is taken as your own, with what it holds ({shape}).",
                    name=file.name,
                    shape=" x ".join(map(str, file.values.shape)),
                )
            )
    if same:
        words = N_(
            "By their checksums these are MNIST’s own files: {names}.", names=", ".join(same)
        )
        notes.append(words)
    return notes
