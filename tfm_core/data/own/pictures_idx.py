"""IDX files of any size: pictures and their labels, plain or packed with gzip."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Sequence

import numpy as np

from tfm_core.data.idx import MAX_HEADER, idx_header
from tfm_core.data.own.pictures import MAX_UNPACKED, shown
from tfm_core.data.own.pictures_arrays import ArrayFile, part_of_file
from tfm_core.data.picture_sources import SOURCES
from tfm_core.sentences import N_, StudentError

_GZIP = b"\x1f\x8b"


def is_idx(content: bytes) -> bool:
    """Say whether a file begins like IDX, or is packed and may be."""
    return content.startswith((b"\0\0", _GZIP))


def idx_arrays(files: Sequence[tuple[str, bytes]]) -> tuple[list[ArrayFile], list[str]]:
    """Return IDX files as arrays, and notes on those that are called like MNIST's.

    Raises ValueError, in a sentence that names the file.
    """
    contents = [unpacked(name, content) for name, content in files]
    arrays = [_file(name, content) for (name, _), content in zip(files, contents, strict=True)]
    return arrays, _compared(contents, arrays)


def _file(name: str, plain: bytes) -> ArrayFile:
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
            shape=" x ".join(map(str, header.shape)),
            right=header.n_bytes,
            n=len(plain),
        )
    if not all(header.shape):
        raise StudentError("{name} is empty.", name=shown(name))
    values = np.frombuffer(plain, np.uint8, offset=header.n_header).reshape(header.shape)
    held = values.astype(np.str_) if values.ndim == 1 else values
    return ArrayFile(shown(name), part_of_file(name), held)


def unpacked(name: str, content: bytes) -> bytes:
    """Return a file without its packing, up to a bound."""
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            plain = file.read(MAX_UNPACKED + 1)
    except (OSError, EOFError, zlib.error):
        raise StudentError(
            "{name} is damaged. Upload it again, or unpacked.",
            name=shown(name),
        ) from None
    if len(plain) > MAX_UNPACKED:
        raise StudentError(
            "{name} unpacks to more than {most} MB.",
            name=shown(name),
            most=MAX_UNPACKED // 10**6,
        )
    return plain


def _compared(contents: Sequence[bytes], arrays: Sequence[ArrayFile]) -> list[str]:
    """Say where a file has the name of one of MNIST's, and whether it is that one."""
    official = SOURCES["mnist"].unpacked
    notes: list[str] = []
    same: list[str] = []
    for content, file in zip(contents, arrays, strict=True):
        name = re.sub(r"\.gz$", "", file.name).replace(".idx", "-idx")
        if name not in official:
            continue
        if hashlib.md5(content, usedforsecurity=False).hexdigest() == official[name]:
            same.append(file.name)
        else:
            notes.append(
                N_(
                    "{name} is named like an MNIST file, but differs ({shape}).",
                    name=file.name,
                    shape=" x ".join(map(str, file.values.shape)),
                )
            )
    if same:
        words = N_("MNIST’s own files: {names}.", names=", ".join(same))
        notes.append(words)
    return notes
