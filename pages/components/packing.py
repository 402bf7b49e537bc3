"""How weights travel to the browser: a short JSON header, then the numbers as raw bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from pages.i18n import _


def packed(header: Mapping[str, Any], values: npt.NDArray[Any]) -> bytes:
    """Return header length (uint32), JSON header, values: little-endian float16 or float32.

    The header gets the ``kind`` of the values; its end is padded to a multiple of four bytes.
    """
    kind = "float16" if values.dtype == np.float16 else "float32"
    text = json.dumps({**header, "kind": kind}).encode()
    text += b" " * (-len(text) % 4)
    little = "<f2" if kind == "float16" else "<f4"
    return len(text).to_bytes(4, "little") + text + values.astype(little).tobytes()


def is_index(value: object, *ends: int) -> TypeGuard[list[int]]:
    """Say whether the browser sent a list of whole numbers, each from 0 to below its end."""
    if not (isinstance(value, list) and len(value) == len(ends)):
        return False
    return all(
        isinstance(part, int) and not isinstance(part, bool) and 0 <= part < end
        for part, end in zip(value, ends, strict=True)
    )


def query_names(tokens: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return what is said of each query of a map: the words for it, else its number and token."""
    if words:
        return list(words)
    return [_("query {n}: {at}").format(n=n, at=token) for n, token in enumerate(tokens, 1)]
