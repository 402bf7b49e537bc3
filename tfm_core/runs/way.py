"""How far a training has come: from guessing every answer alike to the lowest possible loss.

Losses of tasks cannot be compared, their share of this way can. Guessing has the loss ln(classes);
the lowest loss is what the targets allow, 0 where nobody knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.runs.curves import Curves

Floats = npt.NDArray[np.float64]

MIN = 0.15
"""Share of the way from which on a run has learned more than which answers are frequent."""
WINDOW = 10
"""Batches whose median stands for the loss at a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """The batches of a training, ascending: (n,) each, those that were written down.

    losses: of each batch; running: the median of the last WINDOW of them; shares: how far that
    has come, 1 at the lowest loss and below 0 above guessing.
    """

    guessing: float
    floor: float
    steps: npt.NDArray[np.int64]
    losses: Floats
    running: Floats
    shares: Floats

    @property
    def length(self) -> float:
        """The loss between guessing and the lowest possible."""
        return self.guessing - self.floor

    def share(self, loss: float) -> float:
        """Return how far a loss has come."""
        return (self.guessing - loss) / self.length


def way_of(curves: Curves) -> Way | None:
    """Return the way of a training so far; None where it does not say what guessing has."""
    guessing, floor = curves.started.get("start_loss"), curves.started.get("floor") or 0.0
    if guessing is None or guessing <= floor:
        return None
    losses = np.asarray(curves.steps["loss"], np.float64)
    is_known = np.isfinite(losses)
    steps, losses = curves.steps["step"][is_known].astype(np.int64), losses[is_known]
    running = running_median(losses)
    shares = (guessing - running) / (guessing - floor)
    return Way(guessing, floor, steps, losses, running, shares)


def running_median(values: npt.NDArray[Any]) -> Floats:
    """Return the median of each value and up to WINDOW - 1 before it; none may be NaN."""
    known = np.asarray(values, np.float64)
    if not len(known):
        return known
    padded = np.concatenate([np.full(WINDOW - 1, np.nan), known])
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)
    return np.asarray(np.nanmedian(windows, 1))
