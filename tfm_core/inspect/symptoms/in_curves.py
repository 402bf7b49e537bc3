"""Symptoms in losses and gradient norms, at any step; torch-free.

Each threshold lies between recorded curves of trainings that learned and of trainings spoilt on
purpose, with several seeds each; both are in the tests. Comments give what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfm_core.runs.curves import Curves, GradientNorms, lowest
from tfm_core.runs.record.outcome import MIN_PROGRESS, LossProgress, running_median

ABOVE = 1.5
"""Times the loss of guessing (or of the first batch, if larger) that counts as diverged.

Healthy: 1.01 at most, the median of ten batches. Ill: 9 and more."""

LOST = 0.4
"""Share of the way that a training falls back from its best when it loses what it had learned.

Healthy: 0.08 at most."""

PATIENCE = 150
"""Steps after which a training that learns has left guessing; and AFTER_WARMUP behind the warm-up.

Healthy: a share of MIN at step 18 to 105. Ill: never."""
AFTER_WARMUP = 50

TIMES = 5.0
"""Times above or below the usual one from which a learning rate is to blame."""
HALF = 0.5
"""Share of the way below which a training with too low a rate is called slow."""
MAX = 0.9
"""Share of the way below which a still training with too high a rate is called stuck."""
STILL = 0.03
"""Share of the way in 100 steps that is no progress."""

RISE = 0.04
"""Share of the way by which the loss on unseen examples has risen above its lowest for good.

Healthy: 0.012 at most. Ill: 0.06 and more."""
_LATER = 2  # measurements in a row above it

_MIN = 5  # batches before their median is looked at


def diverged_at(way: LossProgress) -> int | None:
    """Return the step at which the loss exploded; None if it did not, or came back.

    It rose far above guessing, or far above its lowest, and learned nothing after.
    """
    if len(way.steps) < _MIN:
        return None
    limit = ABOVE * max(way.guessing, float(way.losses[0]))
    high = np.flatnonzero(way.running[_MIN - 1 :] > limit)
    if len(high) and way.shares[-1] < MIN_PROGRESS:
        at = int(high[0]) + _MIN - 1
        return _first_above(way, at, limit)
    best = np.maximum.accumulate(way.shares)
    if best[-1] >= MIN_PROGRESS and way.shares[-1] <= best[-1] - LOST:
        row = int(np.flatnonzero(way.shares >= best[-1])[0])
        fallen = row + int(np.flatnonzero(way.shares[row:] <= best[-1] - LOST)[0])
        return _first_above(way, fallen, way.guessing - (best[-1] - LOST) * way.length)
    return None


def _first_above(way: LossProgress, row: int, limit: float) -> int:
    """Return the step of the first batch above a limit, within the median's window."""
    begin = max(0, row - 9)
    above = np.flatnonzero(way.losses[begin : row + 1] > limit)
    return int(way.steps[begin + int(above[0])]) if len(above) else int(way.steps[row])


def wait(n_warmup: int) -> int:
    """Return the step from which on a training should have left guessing."""
    return max(PATIENCE, n_warmup + AFTER_WARMUP)


def is_at_chance(way: LossProgress, curves: Curves) -> bool:
    """Say whether a training never came MIN of the way, on its batches or on unseen examples."""
    if not len(way.shares) or float(way.shares.max()) >= MIN_PROGRESS:
        return False
    unseen = np.asarray(curves.validation["loss"], np.float64)
    known = unseen[np.isfinite(unseen)]
    return not len(known) or way.share(float(known.min())) < MIN_PROGRESS


def fall_per_100(way: LossProgress) -> float:
    """Return how much the loss falls in 100 steps, by a line through the newest half."""
    half = len(way.steps) // 2
    steps, losses = way.steps[half:].astype(np.float64), way.losses[half:]
    if len(steps) < _MIN or steps[-1] == steps[0]:
        return 0.0
    return -100 * float(np.polyfit(steps - steps[0], losses, 1)[0])


def overfit(way: LossProgress, curves: Curves) -> dict[str, Any] | None:
    """Return how the validation loss rises while the training loss falls, or None.

    It rises from its lowest, at a step, to the newest; before, now: the training loss then.
    """
    best = lowest(curves.validation)
    if best is None or not len(way.steps):
        return None
    steps = curves.validation["step"][best:]
    losses = np.asarray(curves.validation["loss"][best:], np.float64)
    is_known = np.isfinite(losses)
    steps, losses = steps[is_known], losses[is_known]
    if len(losses) <= _LATER or losses[-_LATER:].min() - losses[0] < RISE * way.length:
        return None
    row = max(0, int(np.searchsorted(way.steps, steps[0], side="right")) - 1)
    before, now = float(way.running[row]), float(way.running[-1])
    if now >= before or now >= losses[0]:
        return None
    values = {"lowest": float(losses[0]), "newest": float(losses[-1])}
    return {"step": int(steps[0]), **values, "before": before, "now": now}


LONG = 25.0
"""A gradient as long as this, in the median of ten steps, explodes.

Healthy: 9.5 at most (14.9 for a single batch). Ill: 82 and more."""

FAINT = 1e-3
"""Share of the longest part's gradient below which a block of the model gets next to none.

Healthy: 0.14 and more. Ill: 0.00016 and less."""

_STILL = 1e-2  # a whole gradient that is shorter has nothing left to learn
_TIMES = 2  # reports in a row


@dataclass(frozen=True, slots=True)
class Long:
    """The gradient is too long since a step: its length now, and the part that has most of it."""

    step: int
    length: float
    part: str | None
    part_length: float


def exploding(curves: Curves) -> Long | None:
    """Return how the gradient explodes, None where it does not now."""
    norms = np.asarray(curves.steps["grad_norm"], np.float64)
    steps = curves.steps["step"]
    is_known = np.isfinite(norms)
    norms, steps = norms[is_known], steps[is_known]
    running = running_median(norms)
    if len(running) < 5 or running[-1] < LONG:
        return None
    calm = np.flatnonzero(running < LONG)
    since = int(steps[int(calm[-1]) + 1]) if len(calm) else int(steps[0])
    measured = [one for one in curves.gradients if one.step >= since and one.norms]
    if not measured:
        return Long(since, float(running[-1]), None, 0.0)
    part, length = max(measured[-1].norms.items(), key=lambda item: item[1])
    return Long(since, float(running[-1]), part, length)


def vanishing(curves: Curves) -> tuple[int, tuple[str, ...], float, str] | None:
    """Return which blocks get next to no gradient, None where all get some, or all is learned.

    Since a step, these parts, at most a share of the gradient of the part with the longest.
    """
    faint = [_faint(one) for one in curves.gradients]
    if len(faint) < _TIMES or not all(faint[-_TIMES:]):
        return None
    since = len(faint) - 1
    while since > 0 and faint[since - 1]:
        since -= 1
    newest, norms = faint[-1], curves.gradients[-1].norms
    longest = max(norms, key=norms.__getitem__)
    return curves.gradients[since].step, tuple(newest), max(newest.values()), longest


def _faint(measured: GradientNorms) -> dict[str, float]:
    """Return the blocks with next to no gradient, with their share of the longest part's."""
    longest = max(measured.norms.values(), default=0.0)
    if not _STILL <= longest < float("inf"):
        return {}
    shares = {part: norm / longest for part, norm in measured.norms.items() if ".layers." in part}
    return {part: share for part, share in shares.items() if share < FAINT}
