"""When a curve gets where it is going: the step of a transition, in one run and over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Values = npt.NDArray[np.floating[Any]]
KNOWN = 0.95
"""The share of sums that are right where they are known."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The steps at which some of n runs reached something."""

    steps: tuple[int, ...]
    n: int

    @property
    def words(self) -> str:
        """The step, or its mean and standard deviation; how many runs, where not all."""
        if not self.steps:
            return "–"
        step = f"{mean(self.steps):,.0f}"
        if len(self.steps) > 1:
            step += f" ± {stdev(self.steps):,.0f}"
        return step if len(self.steps) == self.n else f"{step} ({len(self.steps)} / {self.n})"


def over_runs(steps: Iterable[int | None]) -> Reached:
    """Return what runs reached; None for one that did not."""
    known = tuple(steps)
    return Reached(tuple(step for step in known if step is not None), len(known))


def first(steps: Values, is_there: Bools) -> int | None:
    """Return the first of some steps (S,) at which something holds, None where it never does."""
    return int(steps[is_there.argmax()]) if is_there.any() else None


def since(steps: Values, is_there: Bools) -> int | None:
    """Return the first step from which on something holds to the end, None where it does not.

    The last measurement alone does not count: it says nothing of what stays.
    """
    stays = np.logical_and.accumulate(is_there[::-1])[::-1]
    return first(steps, stays) if stays[-2:].all() else None


def landings(steps: Values, losses: Values, floors: Sequence[float]) -> tuple[int | None, ...]:
    """Return when a loss lands on each floor, from the highest down; the first has none above it.

    The rule: from then on, to the end, the loss is nearer to this floor than to the one above it.
    """
    return tuple(since(steps, losses < (above + floor) / 2) for above, floor in pairwise(floors))
