"""IDX, the file format of MNIST: a magic number, the sizes, then one byte a value.

Yann LeCun's page on MNIST describes it: two zero bytes, the type (8 is an unsigned byte), the
number of dimensions, then each dimension as a big-endian 32-bit number.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from tfm_core.data.download import DataUnavailable
from tfm_core.sentences import N_, Paragraph, StudentError

TYPES = (0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E)
"""The third byte: unsigned and signed bytes, 16 and 32-bit integers, 32 and 64-bit floats."""
MAX_HEADER = 4 + 4 * 4
"""Bytes that say what a file holds, of one with at most four dimensions."""

_UNSIGNED_BYTE = 8


@dataclass(frozen=True, slots=True)
class IdxHeader:
    """The header of a file of one-byte values: its dimensions."""

    shape: tuple[int, ...]

    @property
    def n_header(self) -> int:
        """Bytes before the first value."""
        return 4 + 4 * len(self.shape)

    @property
    def n_bytes(self) -> int:
        """Bytes that the whole file must have."""
        return self.n_header + math.prod(self.shape)


def idx_header(begin: bytes) -> IdxHeader:
    """Return what the first bytes of a file say. Raises ValueError if not IDX."""
    n_dimensions = begin[3] if len(begin) >= 4 else 0
    is_idx = begin[:2] == b"\0\0" and len(begin) >= 4 and begin[2] in TYPES
    if not is_idx or not 1 <= n_dimensions <= 4 or len(begin) < 4 + 4 * n_dimensions:
        raise StudentError("This is not an IDX file.")
    if begin[2] != _UNSIGNED_BYTE:
        raise StudentError("The values of this IDX file are no unsigned bytes. Convert them.")
    return IdxHeader(struct.unpack(f">{n_dimensions}I", begin[4 : 4 + 4 * n_dimensions]))


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
    problem = N_("It is not an IDX file of {each}.", each=each)
    try:
        header = idx_header(begin)
    except StudentError:
        header = IdxHeader(())
    is_fitting = len(header.shape) == 1 + len(shape) and header.shape[1:] == shape
    if is_fitting and header.shape[0]:
        if size == header.n_bytes:
            return header.shape[0]
        problem = N_("It has {size} bytes instead of {right}.", size=size, right=header.n_bytes)
    elif header.shape and all(header.shape) and size == header.n_bytes:
        raise DataUnavailable(
            Paragraph(
                "data/custom-idx", path=path, found=" x ".join(map(str, header.shape)), each=each
            )
        )
    raise DataUnavailable(
        "{path} is damaged. {problem} Delete it to download it again.", path=path, problem=problem
    )
