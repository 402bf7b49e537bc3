"""Downloads: sources, mirrors and checksums; a file is complete or absent. IDX files."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import math
import os
import shutil
import struct
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tfm_core.disk import replace
from tfm_core.sentences import N_, Paragraph, StudentError


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """The torchvision dataset of a task, and mirrors to try after its own.

    unpacked: MD5 of the official files once they are unpacked, where known.
    """

    dataset: str
    mirrors: tuple[str, ...] = ()
    unpacked: Mapping[str, str] = field(default_factory=dict)


SOURCES = {
    "mnist": DownloadSource(
        "MNIST",
        ("https://storage.googleapis.com/cvdf-datasets/mnist/",),
        {
            "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
            "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
            "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
            "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
        },
    ),
    "fashion-mnist": DownloadSource(
        "FashionMNIST",
        ("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
    ),
    "cifar-10": DownloadSource("CIFAR10"),
}


Progress = Callable[[int, int, str], None]  # bytes done, bytes in all (0: unknown), what happens

_CHUNK = 1 << 16
_TIMEOUT = 20  # seconds without a byte


class DataUnavailable(StudentError):
    """A data set is not available; the message says where to put its files."""


def matches(path: Path, md5: str) -> bool:
    """Return whether a file exists and has the checksum."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _digest(file) == md5


def fetch(
    addresses: Sequence[str], path: Path, *, md5: str, label: str, progress: Progress
) -> None:
    """Download a file from the first address that has it whole. Raises DataUnavailable."""
    failures = []
    with _written(path) as file:
        for address in addresses:
            try:
                file.seek(0)
                file.truncate()
                with urllib.request.urlopen(address, timeout=_TIMEOUT) as answer:
                    total, done = int(answer.headers.get("Content-Length") or 0), 0
                    while chunk := answer.read(_CHUNK):
                        file.write(chunk)
                        done += len(chunk)
                        progress(done, total, N_("Downloading {name}", name=path.name))
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                # the system's message without the error number
                words = reason.strerror if isinstance(reason, OSError) else None
                failures.append(f"{address}: {words or error}")
                continue
            file.seek(0)
            if _digest(file) == md5:
                return
            failures.append(f"{address}: the checksum is not {md5}")
        raise DataUnavailable(
            Paragraph(
                "data/download-failed",
                label=label,
                failures="; ".join(failures),
                name=path.name,
                parent=path.parent.absolute(),
            )
        )


def unpack_gzip(packed: Path, path: Path) -> None:
    """Unpack a file. Raises DataUnavailable."""
    with _written(path) as file:
        try:
            with gzip.open(packed) as source:
                shutil.copyfileobj(source, file)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise DataUnavailable(
                "{packed} is damaged. Delete it to download it again.", packed=packed
            ) from None


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.md5(usedforsecurity=False)  # against damage, not against forgery
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` on success and is removed on failure."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise DataUnavailable(
            Paragraph(
                "data/folder-not-writable", parent=path.parent.absolute(), strerror=error.strerror
            )
        ) from None
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        Path(part).chmod(0o644)
        replace(Path(part), path)
    finally:
        Path(part).unlink(missing_ok=True)


# IDX, the format of MNIST, as Yann LeCun's page on it describes it: two zero bytes, the type of the
# values, the number of dimensions, each dimension as a big-endian 32-bit number, then the values.

TYPES = (0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E)
"""The third byte: unsigned and signed bytes, 16 and 32-bit integers, 32 and 64-bit floats."""
MAX_HEADER = 4 + 4 * 4
"""Bytes that say what a file holds, of one with at most four dimensions."""

_UNSIGNED_BYTE = 8


def idx_shape(begin: bytes) -> tuple[int, ...]:
    """Return the dimensions that the first bytes of a file say. Raises ValueError if not IDX."""
    n_dimensions = begin[3] if len(begin) >= 4 else 0
    is_idx = begin[:2] == b"\0\0" and len(begin) >= 4 and begin[2] in TYPES
    if not is_idx or not 1 <= n_dimensions <= 4 or len(begin) < 4 + 4 * n_dimensions:
        raise StudentError("This is not an IDX file.")
    if begin[2] != _UNSIGNED_BYTE:
        raise StudentError("This IDX file does not hold unsigned bytes. Convert it.")
    return struct.unpack(f">{n_dimensions}I", begin[4 : 4 + 4 * n_dimensions])


def idx_size(shape: Sequence[int]) -> int:
    """Return how many bytes a whole file has."""
    return 4 + 4 * len(shape) + math.prod(shape)


def idx_count(path: Path, shape: tuple[int, ...]) -> int:
    """Return how many values of ``shape`` a file holds, which must be complete IDX of these.

    shape: (28, 28) for pictures, () for labels. Raises DataUnavailable, naming the file.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(MAX_HEADER)
        size = path.stat().st_size
    except OSError as error:
        raise DataUnavailable(
            "{path} cannot be read: {strerror}.", path=path, strerror=error.strerror
        ) from None
    each = " x ".join(map(str, ("n", *shape)))
    problem = N_("It is not an IDX file of shape {each}.", each=each)
    found: tuple[int, ...] = ()
    with suppress(StudentError):
        found = idx_shape(begin)
    right = idx_size(found)
    if len(found) == 1 + len(shape) and found[1:] == shape and found[0]:
        if size == right:
            return found[0]
        problem = N_("It has {size} bytes instead of {right}.", size=size, right=right)
    elif found and all(found) and size == right:
        sizes = " x ".join(map(str, found))
        raise DataUnavailable(Paragraph("data/custom-idx", path=path, found=sizes, each=each))
    raise DataUnavailable(
        "{path} is damaged. {problem} Delete it to download it again.", path=path, problem=problem
    )
