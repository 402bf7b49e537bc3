"""Words, numbers and pairs as text: from a link or a field with sentences, and into a link."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.by_hand.attention import LARGEST, MAX, MAX_LETTERS, MIN
from tfm_core.probe.types import Floats
from tfm_core.sentences import StudentError

_MAX_TEXT = 400


def words_of(text: str) -> tuple[str, ...]:
    """Cut a line into words at spaces and commas.

    Raises ValueError, in a sentence, for too few, too many, or a monstrous one.
    """
    words = tuple(re.split(r"[\s,]+", text.strip())) if text.strip() else ()
    if not MIN <= len(words) <= MAX:
        raise StudentError("Type {fewest} to {most} words.", fewest=MIN, most=MAX)
    for word in words:
        if len(word) > MAX_LETTERS:
            raise StudentError(
                "“{word}…” has {n_word} letters; at most {most_letters}.",
                word=word[:MAX_LETTERS],
                n_word=len(word),
                most_letters=MAX_LETTERS,
            )
    return words


def text_of(vectors: Floats) -> str:
    """Write vectors for a link: ``1,0,0;0,1,0``."""
    return ";".join(",".join(_short(value) for value in row) for row in vectors.tolist())


def vectors_of(text: str, n_words: int, d_model: int) -> Floats:
    """Read vectors (n_words, d_model) from a link.

    Raises ValueError, in a sentence, where they are not that many numbers from -10 to 10.
    """
    rows = text[:_MAX_TEXT].split(";")
    if len(rows) != n_words:
        raise StudentError(
            "The link has {n_rows} vectors for {n_words} words.", n_rows=len(rows), n_words=n_words
        )
    vectors = []
    for row in rows:
        parts = row.split(",")
        if len(parts) != d_model:
            raise StudentError(
                "The vector “{row}” in the link has {n_parts} numbers, not {d_model}.",
                row=row[:40],
                n_parts=len(parts),
                d_model=d_model,
            )
        vectors.append([_number(part) for part in parts])
    return checked(np.array(vectors, np.float32))


def matrix_of(text: str, name: str, d_model: int) -> Floats:
    """Read a matrix (d_model, d_model) from a link; ``name`` is what the user knows it by.

    Raises ValueError, in a sentence, where it is not that many numbers from -10 to 10.
    """
    rows = [row.split(",") for row in text[:_MAX_TEXT].split(";")]
    if [len(row) for row in rows] != [d_model] * d_model:
        raise StudentError(
            "{name} in the link is not {d_model} rows of {d_model} numbers.",
            name=name,
            d_model=d_model,
        )
    return checked(np.array([[_number(part) for part in row] for row in rows], np.float64))


def pairs_of(text: str, n_words: int) -> tuple[tuple[int, int], ...]:
    """Read pairs of words, each counted from 1, from a link: ``1-3,2-2``; returned from 0.

    Raises ValueError, in a sentence, for a pair of words that are not there.
    """
    pairs = set()
    for pair in filter(None, text[:_MAX_TEXT].split(",")):
        pairs.add(indices_of(pair, (n_words, n_words)))
    return tuple(sorted((query, key) for query, key in pairs))


def indices_of(text: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """Read indices counted from 1, ``3-2-1``, one within each size; returned from 0.

    Raises ValueError, in a sentence, where they are not that many or beyond a size.
    """
    parts = text.split("-")
    indices = tuple(int(part) - 1 for part in parts if re.fullmatch(r"[1-9]\d?", part))
    is_there = len(indices) == len(parts) == len(sizes)
    if not is_there or any(at >= size for at, size in zip(indices, sizes, strict=True)):
        ranges = ", ".join(f"1 to {size}" for size in sizes)
        raise StudentError(
            "“{text}” in the link is not {n_sizes} indices ({ranges}).",
            text=text[:20],
            n_sizes=len(sizes),
            ranges=ranges,
        )
    return indices


def text_of_indices(indices: Sequence[int]) -> str:
    """Write indices for a link, counted from 1: ``3-2-1``."""
    return "-".join(str(index + 1) for index in indices)


def rounded(values: npt.ArrayLike) -> Floats:
    """Return numbers as a link holds them, so that it gives back the same ones: four digits."""
    return np.round(np.asarray(values, np.float64), 4).astype(np.float32)


def checked(vectors: npt.ArrayLike) -> Floats:
    """Return the numbers, rounded. Raises ValueError for a missing or a too large one."""
    values = rounded(vectors)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise StudentError(
            "Type a number in row {row}, column {column}.", row=row + 1, column=column + 1
        )
    if np.abs(values).max(initial=0) > LARGEST:
        worst = float(values.flat[int(np.abs(values).argmax())])
        raise StudentError("{worst:g} is not between -10 and 10.", worst=worst)
    return values


def _number(text: str) -> float:
    if not re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)\s*", text) or not math.isfinite(float(text)):
        raise StudentError("“{text}” is not a number, such as 1, 0.5 or -2.", text=text[:20])
    return float(text)


def _short(value: float) -> str:
    return f"{round(value, 4):g}"
