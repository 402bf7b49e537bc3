"""Curves as short plain lines: thinned without losing a spike, and smoothed looking back only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tfm_core.plots.palette import COLOURS
from tfm_core.probe.types import Floats
from tfm_core.runs.curves import Curves, Series

MAX_DRAWN = 400


def thin(
    x: Floats, y: Floats, *, most: int = MAX_DRAWN, is_log: bool = False
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


Quantity = Literal["loss", "accuracy"]
Role = Literal[
    "batch", "training", "validation", "whole", "average", "average_whole", "test", "best"
]
ROLE_COLOURS: dict[str, str] = {
    "batch": "train",
    "training": "train",
    "validation": "validation",
    "whole": "validation",
    "average": "average",
    "average_whole": "average",
    "best": "validation",
    "test": "test",
}
"""What each line is called in the palette."""
WINDOW = 10
"""Batches that the line of training averages, looking back only."""
MAX_POINTS = 200


@dataclass(frozen=True, slots=True)
class StageLine:
    """One series: what it is of, ascending steps, and values of four digits; None where unknown.

    batch: what each batch of training said; training: its running mean; whole: whole sequences.
    average: validation of averaged weights; average_whole: its whole sequences.
    """

    quantity: Quantity
    role: Role
    steps: tuple[int, ...]
    values: tuple[float | None, ...]
    colour: str


def curve_lines(curves: Curves, *, has_wholes: bool, is_patient: bool = False) -> list[StageLine]:
    """Return the lines of both figures, each of some 400 points at most; no spike is lost.

    has_wholes: whether whole sequences are measured too. is_patient: ring the best validation.
    """
    lines = []
    for quantity in ("loss", "accuracy"):
        steps, values = curves.steps["step"], curves.steps[quantity]
        lines.append(_line(quantity, "batch", steps, values))
        lines.append(_line(quantity, "training", steps, smooth(values, WINDOW)))
        kinds: tuple[tuple[Role, Role, Series], ...] = (
            ("validation", "whole", curves.validation),
            ("average", "average_whole", curves.averaged),
        )
        for role, whole, unseen in kinds:
            lines.append(_line(quantity, role, unseen["step"], unseen[quantity]))
            if has_wholes and quantity == "accuracy":
                lines.append(_line(quantity, whole, unseen["step"], unseen["sequence_accuracy"]))
        lines.append(_line(quantity, "test", curves.test["step"], curves.test[quantity]))
        best = curves.best_validation() if is_patient else None
        if best is not None:
            row = slice(best, best + 1)
            counted = curves.unseen
            lines.append(_line(quantity, "best", counted["step"][row], counted[quantity][row]))
    return [line for line in lines if any(value is not None for value in line.values)]


def _line(quantity: Quantity, role: Role, steps: Floats, values: Floats) -> StageLine:
    known = np.isfinite(steps)
    steps, values = steps[known], values[known]
    if len(steps) > MAX_POINTS:  # dense where steps are even, and where their logarithm is
        kept = np.union1d(
            thin(steps, values, most=MAX_POINTS), thin(steps, values, most=MAX_POINTS, is_log=True)
        )
        steps, values = steps[kept], values[kept]
    return StageLine(
        quantity,
        role,
        tuple(int(step) for step in steps),
        tuple(float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()),
        COLOURS[ROLE_COLOURS[role]],
    )
