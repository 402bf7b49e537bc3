"""NumPy's archives of arrays, such as Keras' ``mnist.npz`` and those of MedMNIST: never pickles."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tfm_core.data.own.pictures import (
    GUESSED,
    MAX_PICTURES,
    MAX_UNPACKED,
    Choices,
    Form,
    LeftOut,
    Pictures,
    shown,
)
from tfm_core.data.own.pictures_arrays import ArrayFile, part_of_file, read_arrays
from tfm_core.sentences import N_, StudentError

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
_BAD_HEADER = (tokenize.TokenError, SyntaxError, TypeError, RecursionError, OverflowError)
"""What NumPy raises, beside ValueError, on a header that is damaged or forged."""

_MAX_ARRAYS = 12
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def is_npz(content: bytes) -> bool:
    """Say whether a zip holds arrays and nothing else."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except _DAMAGE:
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_npz(name: str, content: bytes, form: Form, choices: Choices = GUESSED) -> Pictures:
    """Read arrays such as ``x_train``, ``y_train``, ``x_test`` and ``y_test``.

    Sizes are checked before anything is unpacked. Raises ValueError, in a sentence.
    """
    arrays: list[tuple[str, npt.NDArray[Any]]] = []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
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
        file for called, array in arrays if (file := _file(called, array, left_out)) is not None
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
            shape, dtype = _header(file)
    except (*_DAMAGE, *_BAD_HEADER, RuntimeError, KeyError):
        raise StudentError(_UNREADABLE, name=shown(name)) from None
    if dtype.hasobject:
        raise StudentError(
            "{name} holds Python objects, which are never loaded. Save numbers.",
            name=shown(name),
        )
    if shape and max(shape) > MAX_PICTURES:
        raise StudentError(
            "{name} has the shape {shape}; the limit is {most:,} pictures.",
            name=shown(name),
            shape=" x ".join(map(str, shape)),
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
    except (*_DAMAGE, *_BAD_HEADER, RuntimeError):
        raise StudentError(_UNREADABLE, name=shown(name)) from None
    return array


_UNREADABLE = N_("{name} is damaged, encrypted or not a NumPy array.")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    shape, _is_fortran, dtype = _HEADERS[version](file)
    return shape, dtype


def _file(name: str, array: npt.NDArray[Any], left_out: LeftOut) -> ArrayFile | None:
    """Return an array as pictures or labels; one that is neither is left out and said."""
    part, called = part_of_file(name), shown(name)
    if array.ndim == 2 and array.shape[1] == 1:  # MedMNIST's labels
        array = array[:, 0]
    shape = " x ".join(map(str, array.shape)) or "1"
    if array.ndim == 1 and array.size and (array.dtype.kind in "iuU" or _is_whole(array)):
        whole = array if array.dtype.kind == "U" else array.astype(np.int64)
        return ArrayFile(called, part, whole.astype(np.str_))
    if array.ndim in (3, 4) and array.size and array.dtype.kind in "biuf":
        return ArrayFile(called, part, _as_bytes(called, array))
    if array.ndim == 2:
        raise StudentError(
            "{name} has the shape {shape}. Labels have the shape (N), pictures (N, height, width).",
            name=called,
            shape=shape,
        )
    left_out.add(name, N_("An array of shape {shape} holds no pictures or labels.", shape=shape))
    return None


def _is_whole(array: npt.NDArray[Any]) -> bool:
    kind = array.dtype.kind
    return kind in "bf" and bool((np.isfinite(array) & (array == np.floor(array))).all())


def _is_fraction(array: npt.NDArray[Any]) -> bool:
    """Say whether the values are brightness from 0 to 1."""
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
    """Say which pictures had brightness from 0 to 1."""
    names = [
        shown(name)
        for name, array in arrays
        if array.ndim in (3, 4) and array.size and array.dtype.kind in "bf" and _is_fraction(array)
    ]
    words = N_("Values from 0 to 1 were scaled to 255: {names}.", names=", ".join(names))
    return [words] if names else []
