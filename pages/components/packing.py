"""How weights travel to the browser: a short JSON header, then the numbers as raw bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

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


def query_names(tokens: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return what is said of each query of a map: the words for it, else its number and token."""
    if words:
        return list(words)
    return [_("query {n}: {at}", n=n, at=token) for n, token in enumerate(tokens, 1)]


def pooled(
    weights: npt.NDArray[Any], most: int, *, least_side: int = 1
) -> tuple[npt.NDArray[Any], int]:
    """Return maps (F, ..., Q, K), and how many cells to a side one value stands for.

    A moment, ``weights[0]``, has ``most`` values at most, as far as the larger side of a map keeps
    ``least_side`` values; a value is the largest of its block.
    """
    n_values = weights[0].size
    block = int(np.ceil(np.sqrt(n_values / most))) if n_values > most else 1
    block = max(1, min(block, max(weights.shape[-2:]) // least_side))
    if block == 1:
        return weights, 1
    *outer, n_query, n_key = weights.shape
    pad = ((0, 0),) * len(outer) + ((0, -n_query % block), (0, -n_key % block))
    padded = np.pad(weights, pad, constant_values=np.nan)
    rows, columns = padded.shape[-2] // block, padded.shape[-1] // block
    parts = padded.reshape(*outer, rows, block, columns, block)
    return np.fmax.reduce(np.fmax.reduce(parts, axis=-1), axis=-2), block
