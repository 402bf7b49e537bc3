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


def check_idx(path: Path, shape: tuple[int, ...]) -> None:
    """See that a file is complete IDX of this shape. Raises DataUnavailable, naming the file."""
    header = struct.pack(f">BBBB{len(shape)}I", 0, 0, _UNSIGNED_BYTE, len(shape), *shape)
    right = len(header) + math.prod(shape)
    try:
        with path.open("rb") as file:
            magic = file.read(len(header))
        size = path.stat().st_size
    except OSError as error:
        raise DataUnavailable(
            "{path} cannot be read: {strerror}.", path=path, strerror=error.strerror
        ) from None
    if size != right:
        problem = f"it has {size} bytes, but {right} would be right"
    elif magic != header:
        problem = f"it does not begin like an IDX file of {' x '.join(map(str, shape))}"
    else:
        return
    raise DataUnavailable(
        "{path} is damaged: {problem}. Delete it, and it is downloaded again.",
        path=path,
        problem=problem,
    )
