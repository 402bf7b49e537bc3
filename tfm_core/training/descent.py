"""When to look inside: at log-spaced steps, and wherever the loss has fallen by another part.

A model learns in a few of its steps, and nobody knows beforehand in which. So the loss of the
batches is followed, smoothed, on its way from the first one down to the lowest that the targets
allow; a step that brings it past another part of that way is worth a look. The way is measured in
the square root of what is left to learn: the last small losses turn most answers right.

It draws nothing at random and needs three numbers to go on from a checkpoint as if training had
never stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tfm_core.facts.storage import WEIGHT_SETS
from tfm_core.reading import is_number

MEMORY = 0.8
"""Share of the smoothed loss that a step leaves as it was."""

VALIDATIONS = 8
"""Parts of the way: at the end of each the weights are measured on unseen examples."""


@dataclass(slots=True)
class Descent:
    """Follows the loss. floor: the lowest that the targets allow, or what stands in for it.

    first: the first loss; smoothed: that of now; way: the farthest that it came, 0 to 1.
    """

    floor: float = 0.0
    first: float | None = None
    smoothed: float = 0.0
    way: float = 0.0
    _before: float = field(default=0.0, repr=False)

    def update(self, loss: float) -> None:
        """Take in the loss of a step."""
        if self.first is None:
            self.first = self.smoothed = loss
        self.smoothed = MEMORY * self.smoothed + (1 - MEMORY) * loss
        self._before = self.way
        left = max(0.0, self.smoothed - self.floor) / max(self.first - self.floor, 1e-9)
        self.way = max(self.way, 1 - math.sqrt(left))

    def passes(self, n_parts: int, every: int = 1) -> bool:
        """Say whether the last step came past the end of one of so many parts of the way.

        every: only the end of each so-many-th part counts.
        """
        ends = [min(int(way * n_parts), n_parts - 1) // every for way in (self._before, self.way)]
        return ends[1] > ends[0]

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        return {"first": self.first, "smoothed": self.smoothed, "way": self.way}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the state of a checkpoint; one from before the loss was followed has none."""
        self.first = state.get("first")
        self.smoothed, self.way = state.get("smoothed", 0.0), state.get("way", 0.0)


def is_state(value: object) -> bool:
    """Say whether a value is the state of a descent; an empty one is."""
    if not isinstance(value, dict):
        return False
    first = value.get("first")
    return (
        (first is None or is_number(first, -1e300, 1e300))
        and is_number(value.get("smoothed", 0.0), -1e300, 1e300)
        and is_number(value.get("way", 0.0), 0.0, 1.0)
    )


@dataclass(frozen=True, slots=True)
class Looks:
    """The snapshots that a training may take: ``spaced`` are fixed, fewer than ``n_falls`` follow
    the loss, and at most ``WEIGHT_SETS`` are worth the weights, too.
    """

    spaced: frozenset[int]
    n_falls: int

    def is_due(self, step: int, descent: Descent) -> bool:
        """Say whether a snapshot is taken of a step."""
        return step in self.spaced or bool(self.n_falls and descent.passes(self.n_falls))

    def keeps_weights(self, step: int, descent: Descent) -> bool:
        """Say whether the weights of a step in which a snapshot is due are worth keeping."""
        if step in (0, max(self.spaced)):
            return True
        every = math.ceil(self.n_falls / (WEIGHT_SETS - 1))
        return bool(self.n_falls and descent.passes(self.n_falls, every))


def looks(total: int, count: int) -> Looks:
    """Return at most ``count`` looks at a training of so many steps.

    Few are log-spaced alone. Of more, two in seven are, so that a run that learns nothing has
    some, too; the others wait for the loss to fall.
    """
    n_spaced = max(min(count, 8), 2 * count // 7)
    return Looks(frozenset(spaced_steps(total, n_spaced)), count - n_spaced)


def spaced_steps(total: int, count: int) -> list[int]:
    """Return at most ``count`` steps from 0 to ``total``, log-spaced."""
    if count == 2 or total < 2:
        return sorted({0, total})
    ratio = total ** (1 / (count - 2))
    steps = {0, total} | {min(total, round(ratio**i)) for i in range(count - 1)}
    return sorted(steps)
