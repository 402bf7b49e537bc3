"""IDX, the file format of MNIST: a magic number, the sizes, then one byte a value.

Yann LeCun's page on MNIST describes it: two zero bytes, the type (8 is an unsigned byte), the
number of dimensions, then each dimension as a big-endian 32-bit number.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

from tfm_core.data.download import DataUnavailable

_UNSIGNED_BYTE = 8


def idx_count(path: Path, shape: tuple[int, ...]) -> int:
    """Return how many values of ``shape`` a file holds, which must be complete IDX of these.

    shape: (28, 28) for pictures, () for labels. Raises DataUnavailable, naming the file.
    """
    n_dimensions = 1 + len(shape)
    begins = struct.pack(">BBBB", 0, 0, _UNSIGNED_BYTE, n_dimensions)
    n_header = len(begins) + 4 * n_dimensions
    try:
        with path.open("rb") as file:
            header = file.read(n_header)
        size = path.stat().st_size
    except OSError as error:
        raise DataUnavailable(
            "{path} cannot be read: {strerror}.", path=path, strerror=error.strerror
        ) from None
    found: tuple[int, ...] = ()
    if len(header) == n_header and header.startswith(begins):
        found = struct.unpack(f">{n_dimensions}I", header[len(begins) :])
    right = n_header + math.prod(found)
    if not found or found[1:] != shape or not found[0]:
        each = " x ".join(map(str, ("n", *shape)))
        problem = f"it does not begin like an IDX file of {each}"
    elif size != right:
        problem = f"it has {size} bytes, but {right} would be right"
    else:
        return found[0]
    raise DataUnavailable(
        "{path} is damaged: {problem}. Delete it, and it is downloaded again.",
        path=path,
        problem=problem,
    )
