"""Judge trainings by their loss: diverged, at chance, overfitted. Every threshold is here.

A loss is judged by how far it has come from chance to the lowest possible loss: losses of different
tasks cannot be compared, this share can. Each threshold lies between recorded curves of trainings
that learned and of trainings spoilt on purpose, with several seeds each; both are in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.runs.curves import Curves, lowest
from tfm_core.runs.status import Status
from tfm_core.sentences import N_, Paragraph, Sentence
from tfm_core.training.progress import is_of_divergence

OutcomeKind = Literal["diverged", "at-chance", "overfits"]
Floats = npt.NDArray[np.float64]

MIN_PROGRESS = 0.15
"""Share of the way from which on a run has learned more than which answers are frequent."""
WINDOW = 10
"""Number of batches whose median is the loss at a step."""
_FEWEST = 5  # batches before the median of a training that goes on is looked at
ABOVE = 1.5
"""Times the loss of guessing (or of the first batch, if larger) that counts as diverged.

Healthy: 1.01 at most, the median of ten batches. Ill: 9 and more."""
LOST = 0.4
"""Share of the way that a training falls back from its best when it loses what it had learned.

Healthy: 0.08 at most."""
RISE = 0.04
"""Share of the way by which the loss on unseen examples has risen above its lowest for good.

Healthy: 0.012 at most. Ill: 0.06 and more."""
_LATER = 2  # measurements in a row above it
_JUMP = 0.25  # share of the way that a loss may not jump up
_JUMP_TIMES = 3  # times the loss before
_LAST_STEPS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why a training is no success since a step, in a sentence with its numbers.

    repeats: whether resuming it would surely end the same way, because the CPU repeats every
    number of a failed step from the last checkpoint on.
    """

    kind: OutcomeKind
    step: int
    sentence: str
    repeats: bool = False


def outcome_of(status: Status, curves: Curves) -> Outcome | None:
    """Return what went wrong with the learning of a run that ended, None where nothing did.

    A run that was stopped, or failed for another reason, says why itself.
    """
    progress, loss = loss_progress(curves), _last_loss(curves)
    found = diverged(status, curves, progress)
    if found is not None or status.state != "finished" or progress is None or loss is None:
        return found
    if progress.share(loss) >= MIN_PROGRESS:
        return None
    if len(progress.shares) and progress.shares[-1] >= MIN_PROGRESS:
        words = N_(
            "It memorised: training loss {own:.2f}, unseen {loss:,.2f}, guessing {guessing:.2f}.",
            own=float(progress.running[-1]),
            loss=loss,
            guessing=progress.guessing,
        )
        return Outcome("overfits", int(progress.steps[-1]), words)
    return at_chance(progress, loss)


def diverged(status: Status, curves: Curves, progress: LossProgress | None) -> Outcome | None:
    """Return since when a training is lost; None where it is not, or came back."""
    if isinstance(status.reason, Sentence) and is_of_divergence(status.reason):
        step = int(status.reason.values["step"])
        return Outcome("diverged", step, status.reason, repeats=status.device == "cpu")
    if status.state == "failed" or progress is None or not len(progress.steps):
        return None
    last = _last_loss(curves) if status.state == "finished" else None
    since = _diverged_at(progress, last)
    if since is None:
        return None
    words = Paragraph(
        "symptoms/diverged",
        step=since,
        loss=float(progress.running[-1]) if last is None else last,
        lowest=float(progress.running.min()),
        guessing=progress.guessing,
    )
    return Outcome("diverged", since, words)


def at_chance(progress: LossProgress, loss: float | None = None) -> Outcome:
    """Return that a training has learned nothing so far. loss: if it is over, at its end."""
    step = int(progress.steps[-1]) if len(progress.steps) else 0
    if loss is None:
        loss = float(progress.running[-1]) if step else progress.guessing
    values = {"step": step, "loss": loss, "guessing": progress.guessing}
    return Outcome("at-chance", 0, Paragraph("symptoms/at-chance", **values))


def _diverged_at(progress: LossProgress, last: float | None) -> int | None:
    """Return the step at which the loss exploded; None if it did not, or came back.

    It rose far above guessing, or far above its lowest, and learned nothing after. last: the loss
    at the end of a training that is over.
    """
    fewest = _FEWEST if last is None else 1
    if len(progress.steps) < fewest:
        return None
    limit = ABOVE * max(progress.guessing, float(progress.losses[0]))
    high = np.flatnonzero(progress.running[fewest - 1 :] > limit)
    share = float(progress.shares[-1]) if last is None else progress.share(last)
    if len(high) and share < MIN_PROGRESS:
        return _first_above(progress, int(high[0]) + fewest - 1, limit)
    best = np.maximum.accumulate(progress.shares)
    if best[-1] >= MIN_PROGRESS and progress.shares[-1] <= best[-1] - LOST:
        row = int(np.flatnonzero(progress.shares >= best[-1])[0])
        fallen = row + int(np.flatnonzero(progress.shares[row:] <= best[-1] - LOST)[0])
        limit = progress.guessing - (best[-1] - LOST) * progress.length
        return _first_above(progress, fallen, limit)
    return None


def _first_above(progress: LossProgress, row: int, limit: float) -> int:
    """Return the step of the first batch above a limit, within the median's window."""
    begin = max(0, row + 1 - WINDOW)
    above = np.flatnonzero(progress.losses[begin : row + 1] > limit)
    return int(progress.steps[begin + int(above[0])]) if len(above) else int(progress.steps[row])


def overfit(curves: Curves) -> dict[str, Any] | None:
    """Return how the validation loss rises while the training loss falls, or None.

    It rises from its lowest, at a step, to the newest; before, now: the training loss then.
    """
    best, progress = lowest(curves.validation), loss_progress(curves)
    if best is None or progress is None or not len(progress.steps):
        return None
    steps = curves.validation["step"][best:]
    losses = np.asarray(curves.validation["loss"][best:], np.float64)
    is_known = np.isfinite(losses)
    steps, losses = steps[is_known], losses[is_known]
    if len(losses) <= _LATER or losses[-_LATER:].min() - losses[0] < RISE * progress.length:
        return None
    row = max(0, int(np.searchsorted(progress.steps, steps[0], side="right")) - 1)
    before, now = float(progress.running[row]), float(progress.running[-1])
    if now >= before or now >= losses[0]:
        return None
    values = {"lowest": float(losses[0]), "newest": float(losses[-1])}
    return {"step": int(steps[0]), **values, "before": before, "now": now}


def jump(progress: LossProgress, after: int, until: int) -> tuple[int, float, float] | None:
    """Return the first step between two at which a batch's loss jumped, its loss before and then.

    None where it did not.
    """
    usual, losses = progress.running[:-1], progress.losses[1:]
    jumped = losses >= np.maximum(_JUMP_TIMES * usual, usual + _JUMP * progress.length)
    steps = progress.steps[1:]
    found = np.flatnonzero(jumped & (steps > max(after, 1)) & (steps <= until))
    if not len(found):
        return None
    at = int(found[0])
    return int(steps[at]), float(usual[at]), float(losses[at])


def _last_loss(curves: Curves) -> float | None:
    """Return the loss at the end: on unseen examples, else the mean of the last steps.

    It is that of the weights that were trained, beside which their own examples' loss stands.
    """
    step, measured = curves.validation.last("step"), curves.validation.last("loss")
    if step and measured is not None:
        return measured
    last = curves.steps["loss"][-_LAST_STEPS:]
    return float(last.mean()) if len(last) and np.isfinite(last).all() else None


@dataclass(frozen=True, slots=True, eq=False)
class LossProgress:
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


def loss_progress(curves: Curves) -> LossProgress | None:
    """Return the progress of a training so far, or None if its chance level is unknown."""
    guessing, floor = curves.started.get("start_loss"), curves.started.get("floor") or 0.0
    if guessing is None or guessing <= floor:
        return None
    losses = np.asarray(curves.steps["loss"], np.float64)
    is_known = np.isfinite(losses)
    steps, losses = curves.steps["step"][is_known].astype(np.int64), losses[is_known]
    running = running_median(losses)
    shares = (guessing - running) / (guessing - floor)
    return LossProgress(guessing, floor, steps, losses, running, shares)


def running_median(values: npt.NDArray[Any]) -> Floats:
    """Return the median of each value and up to WINDOW - 1 before it; none may be NaN."""
    known = np.asarray(values, np.float64)
    if not len(known):
        return known
    padded = np.concatenate([np.full(WINDOW - 1, np.nan), known])
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)
    return np.asarray(np.nanmedian(windows, 1))
