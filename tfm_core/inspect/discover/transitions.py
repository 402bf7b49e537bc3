"""When a curve gets where it is going: the step of a transition, in one run and over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import mean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.probe.types import Bools

Values = npt.NDArray[np.floating[Any]]
KNOWN = 0.95
"""The share of sums that are right where they are known."""


def over_runs(steps: Iterable[int | None]) -> str:
    """Return the step that runs reached, or mean and standard deviation; how many, where not all.

    steps: None of a run that did not reach it.
    """
    every = tuple(steps)
    known = [step for step in every if step is not None]
    if not known:
        return "–"
    words = f"{mean(known):,.0f}"
    if len(known) > 1:
        words += f" ± {stdev(known):,.0f}"
    return words if len(known) == len(every) else f"{words} ({len(known)} / {len(every)})"


def stays(is_there: Bools) -> Bools:
    """Return from where on something holds to the end, along axis 0."""
    return np.logical_and.accumulate(is_there[::-1])[::-1]


def first(steps: Values, is_there: Bools) -> int | None:
    """Return the first of some steps (S,) at which something holds, None where it never does."""
    return int(steps[is_there.argmax()]) if is_there.any() else None


def since(steps: Values, is_there: Bools) -> int | None:
    """Return the first step from which on something holds to the end, None where it does not.

    The last measurement alone does not count: it says nothing of what stays.
    """
    holds = stays(is_there)
    return first(steps, holds) if holds[-2:].all() else None


def landings(steps: Values, losses: Values, floors: Sequence[float]) -> tuple[int | None, ...]:
    """Return when a loss lands on each floor, from the highest down; the first has none above it.

    The rule: from then on, to the end, the loss is nearer to this floor than to the one above it.
    """
    return tuple(since(steps, losses < (above + floor) / 2) for above, floor in pairwise(floors))
