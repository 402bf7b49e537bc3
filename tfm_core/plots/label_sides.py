"""On which side of its point a word stands, so that words which lie close stay readable.

Each word in turn takes the side where it covers least of the points and of the words before it:
the greedy point-feature labelling of cartography (Christensen, Marks & Shieber 1995, section 4).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SIDES: dict[str, tuple[float, float]] = {  # plotly's name -> where the word's middle lies, of 1
    "top center": (0, 1),
    "bottom center": (0, -1),
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top right": (1, 1),
    "top left": (-1, 1),
    "bottom right": (1, -1),
    "bottom left": (-1, -1),
}
_LETTER, _WIDE_LETTER, _LINE, _MARKER = 6.0, 11.0, 13.0, 10.0  # pixels
_WORSE = 4.0  # a word is harder to read under another word than over a point
_MAX = 400  # words; more of them cover each other wherever they stand

Floats = npt.NDArray[np.floating]


def sides(points: Floats, words: Sequence[str], *, size: tuple[float, float]) -> list[str]:
    """Return plotly's ``textposition`` of each word.

    points: (n, 2), from 0 to 1 in x and y of the figure. size: its width and height in pixels.
    """
    first = next(iter(SIDES))
    if len(words) > _MAX:
        return [first] * len(words)
    middles = np.asarray(points, np.float64) * np.asarray(size)
    markers = _boxes(middles, np.full((len(words), 2), _MARKER))
    taken, chosen = np.empty((0, 4)), []
    for middle, word in zip(middles, words, strict=True):
        extent = np.array([width(word), _LINE])
        away = np.array(list(SIDES.values())) * (extent + _MARKER) / 2
        candidates = _boxes(middle + away, np.tile(extent, (len(SIDES), 1)))
        covered = [
            _overlap(box, markers) + _WORSE * (_overlap(box, taken) + _outside(box, size))
            for box in candidates
        ]
        best = int(np.argmin(covered))
        taken = np.vstack([taken, candidates[best]])
        chosen.append(list(SIDES)[best])
    return chosen


def width(word: str) -> float:
    """Return about how many pixels a word takes; Korean letters are wide."""
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(c) in "WF" else _LETTER for c in word)


def _boxes(middles: Floats, extents: Floats) -> Floats:
    return np.hstack([middles - extents / 2, middles + extents / 2])  # (n, 4)


def _overlap(box: Floats, others: Floats) -> float:
    """Return the pixels that a box (4,) shares with others (n, 4)."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    return float(np.prod(np.clip(high - low, 0, None), axis=1).sum())


def _outside(box: Floats, size: tuple[float, float]) -> float:
    inside = _overlap(box, np.array([[0, 0, *size]]))
    return float(np.prod(box[2:] - box[:2])) - inside
