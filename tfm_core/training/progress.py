"""Progress of a training: the descent of its loss, early stopping, and divergence. No torch.

A model learns in a few of its steps, unknown beforehand. So the smoothed loss of the batches is
followed from the first one down to the lowest that the targets allow. Progress is measured by the
square root of what remains, because the last small losses turn most answers right; a step that
completes another part is worth a snapshot.

Nothing here is random, and a few numbers in a checkpoint let a training continue as if it had never
stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.reading import is_number
from tfm_core.sentences import N_, Sentence, StudentError

MEMORY = 0.8
"""Share of the smoothed loss that a step leaves as it was."""

VALIDATIONS = 8
"""Parts of the descent: at the end of each the weights are validated."""


@dataclass(slots=True)
class Descent:
    """Follows the loss. floor: the lowest that the targets allow, or an estimate.

    first: the first loss; smoothed: the current one; progress: the farthest so far, 0 to 1.
    """

    floor: float = 0.0
    first: float | None = None
    smoothed: float = 0.0
    progress: float = 0.0
    _before: float = field(default=0.0, repr=False)

    def update(self, loss: float) -> None:
        """Take in the loss of a step."""
        if self.first is None:
            self.first = self.smoothed = loss
        self.smoothed = MEMORY * self.smoothed + (1 - MEMORY) * loss
        self._before = self.progress
        remaining = max(0.0, self.smoothed - self.floor) / max(self.first - self.floor, 1e-9)
        self.progress = max(self.progress, 1 - math.sqrt(remaining))

    def passes(self, n_parts: int, every: int = 1) -> bool:
        """Return whether the last step completed one of ``n_parts`` parts of the descent.

        every: count only every so many parts.
        """
        ends = [
            min(int(share * n_parts), n_parts - 1) // every
            for share in (self._before, self.progress)
        ]
        return ends[1] > ends[0]

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        return {"first": self.first, "smoothed": self.smoothed, "way": self.progress}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint; old checkpoints have none."""
        self.first = state.get("first")
        self.smoothed, self.progress = state.get("smoothed", 0.0), state.get("way", 0.0)


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
class SnapshotSchedule:
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


def snapshot_schedule(total: int, count: int) -> SnapshotSchedule:
    """Return a schedule of at most ``count`` snapshots of a training of ``total`` steps.

    Few are log-spaced alone. Of more, two in seven are, so that a run that learns nothing has
    some, too; the others wait for the loss to fall.
    """
    n_spaced = max(min(count, 8), 2 * count // 7)
    return SnapshotSchedule(frozenset(spaced_steps(total, n_spaced)), count - n_spaced)


def spaced_steps(total: int, count: int) -> list[int]:
    """Return at most ``count`` steps from 0 to ``total``, log-spaced."""
    if count == 2 or total < 2:
        return sorted({0, total})
    ratio = total ** (1 / (count - 2))
    steps = {0, total} | {min(total, round(ratio**i)) for i in range(count - 1)}
    return sorted(steps)


@dataclass(slots=True)
class Patience:
    """Follows the validation loss after step 0 and says when to stop.

    limit: validations in a row without a new lowest loss before the end; 0 never ends.
    waited: how many there have been since ``best_step``, the step of the lowest loss.
    """

    limit: int = 0
    best_loss: float = math.inf
    best_step: int | None = None
    waited: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return 0 < self.limit <= self.waited

    def update(self, step: int, loss: float, *, counts: bool = True) -> None:
        """Take in the validation loss of a step.

        counts: as one of the validations that are waited for; one between them can only be better.
        """
        if loss < self.best_loss:
            self.best_loss, self.best_step, self.waited = loss, step, 0
        elif counts:
            self.waited += 1

    def reason(self, *, step: int, total: int) -> str | None:
        """Return why training is over at ``step`` of ``total``, or None where all steps are done.

        Where the limit is reached with the very last step, nothing was cut off.
        """
        if not self.is_over or step >= total:
            return None
        if self.best_step is None:
            return N_("Stopped early at step {step:,}: no validation loss was a number.", step=step)
        return N_(
            "Stopped early at step {step:,}: no improvement since step {best:,} (patience: {n}).",
            step=step,
            best=self.best_step,
            n=self.limit,
        )

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        loss = self.best_loss if math.isfinite(self.best_loss) else None
        return {"best_loss": loss, "best_step": self.best_step, "waited": self.waited}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint; old checkpoints have none."""
        loss = state.get("best_loss")
        self.best_loss = math.inf if loss is None else float(loss)
        self.best_step = state.get("best_step")
        self.waited = int(state.get("waited", 0))


LOSS_DIVERGED = N_(
    "The loss became {loss} at step {step}: the learning rate {learning_rate:g} is probably too "
    "high; try {lower:g}."
)


class TrainingDiverged(StudentError):
    """The loss is no longer a number."""


def is_of_divergence(reason: str | None) -> bool:
    """Say whether the reason of a failed run is that its loss was no longer a number."""
    return isinstance(reason, Sentence) and reason.template == LOSS_DIVERGED.template
