"""What the gradients say: one that explodes, and parts of the model that get next to none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfm_core.runs.curves import Curves, GradientNorms
from tfm_core.runs.record.outcome import running_median

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


@dataclass(frozen=True, slots=True)
class Faint:
    """Blocks of the model get next to no gradient since a step: a share of that of ``longest``."""

    step: int
    parts: tuple[str, ...]
    share: float
    longest: str


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
    told = [one for one in curves.gradients if one.step >= since and one.norms]
    if not told:
        return Long(since, float(running[-1]), None, 0.0)
    part, length = max(told[-1].norms.items(), key=lambda item: item[1])
    return Long(since, float(running[-1]), part, length)


def vanishing(curves: Curves) -> Faint | None:
    """Return which blocks get next to no gradient, None where all get some, or all is learned."""
    faint = [_faint(one) for one in curves.gradients]
    if len(faint) < _TIMES or not all(faint[-_TIMES:]):
        return None
    since = len(faint) - 1
    while since > 0 and faint[since - 1]:
        since -= 1
    newest, norms = faint[-1], curves.gradients[-1].norms
    longest = max(norms, key=norms.__getitem__)
    return Faint(curves.gradients[since].step, tuple(newest), max(newest.values()), longest)


def _faint(told: GradientNorms) -> dict[str, float]:
    """Return the blocks with next to no gradient, with their share of the longest part's."""
    longest = max(told.norms.values(), default=0.0)
    if not _STILL <= longest < float("inf"):
        return {}
    shares = {part: norm / longest for part, norm in told.norms.items() if ".layers." in part}
    return {part: share for part, share in shares.items() if share < FAINT}
