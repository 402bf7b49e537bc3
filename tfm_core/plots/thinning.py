"""Long curves made short, without losing a spike, and made smooth, without looking ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]

MAX_POINTS = 400


def thin(
    x: Floats, y: Floats, *, most: int = MAX_POINTS, is_log: bool = False
) -> npt.NDArray[np.intp]:
    """Return which points to draw, ascending and at most ``most``: the line looks the same.

    x: (n,) ascending, y: (n,). The width is cut into equal parts (equal in log x with ``is_log``),
    and each part keeps its lowest and its highest point; first and last are always kept, so no
    spike is lost, and every point that is drawn was measured.
    """
    n = len(x)
    if n <= most:
        return np.arange(n)
    at = np.log(np.maximum(x, 0.5)) if is_log else np.asarray(x, np.float64)
    n_parts = (most - 2) // 2
    span = max(float(at[-1] - at[0]), 1e-9)
    part = np.minimum(((at - at[0]) / span * n_parts).astype(np.int64), n_parts - 1)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    order = np.lexsort((np.nan_to_num(y, nan=np.inf), part))  # by part, then by height
    lowest = order[starts]
    order = np.lexsort((np.nan_to_num(y, nan=-np.inf), part))
    highest = order[np.append(starts[1:], n) - 1]
    return np.unique(np.concatenate([[0], lowest, highest, [n - 1]]))


def smooth(y: Floats, window: int) -> npt.NDArray[np.float32]:
    """Return the mean of the last ``window`` values at each index (fewer at the beginning), (n,).

    A NaN (a loss that diverged) is left out of the means; where nothing is left, NaN remains.
    """
    if window <= 1 or not len(y):
        return np.asarray(y, np.float32)
    is_known = np.isfinite(y)
    sums = np.cumsum(np.where(is_known, y, 0.0).astype(np.float64))
    counts = np.cumsum(is_known)
    sums[window:] -= sums[:-window].copy()
    counts[window:] -= counts[:-window].copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0, sums / counts, np.nan).astype(np.float32)
