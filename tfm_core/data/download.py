"""Downloads: sources, mirrors and checksums; a file is complete or absent."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
                failures.append(f"{address}: {_why(error)}")
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


def _why(error: Exception) -> str:
    """Return the system's message without the error number."""
    reason = getattr(error, "reason", error)
    words = reason.strerror if isinstance(reason, OSError) else None
    return words or str(error)


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
