"""Classify failed trainings: diverged, never beat chance, or memorised the training set.

By the curves alone: how far the loss has come from chance to the lowest possible loss (``Way`` of
the task). Losses of different tasks cannot be compared, this share can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.runs.curves import Curves
from tfm_core.runs.status import Status
from tfm_core.sentences import N_, Paragraph
from tfm_core.training.progress import is_of_divergence

OutcomeKind = Literal["diverged", "never-learned", "by-heart"]

FAR_ABOVE = 2.0
"""Times the loss of guessing; a training that went beyond and did not learn has diverged."""
_LAST_STEPS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why a run that ended is no success, in a sentence with its numbers.

    repeats: whether resuming it would surely end the same way, because the CPU repeats every
    number of a failed step from the last checkpoint on.
    """

    kind: OutcomeKind
    sentence: str
    repeats: bool = False


def outcome_of(status: Status, curves: Curves) -> Outcome | None:
    """Return what went wrong with the learning of a run that ended, None where nothing did.

    A run that was stopped, or failed for another reason, says why itself.
    """
    if status.state == "failed" and status.reason and is_of_divergence(status.reason):
        return Outcome("diverged", status.reason, repeats=status.device == "cpu")
    way, loss = loss_progress(curves), _last_loss(curves)
    if status.state != "finished" or way is None or loss is None:
        return None
    if way.share(loss) >= MIN_PROGRESS:
        return None
    guessing, peak = way.guessing, _peak(curves)
    if len(way.shares) and way.shares[-1] >= MIN_PROGRESS:
        return Outcome(
            "by-heart",
            N_(
                "It memorised: training loss {own:.2f}, unseen {loss:,.2f}, chance {guessing:.2f}.",
                own=float(way.running[-1]),
                loss=loss,
                guessing=guessing,
            ),
        )
    if loss > FAR_ABOVE * guessing:
        return Outcome(
            "diverged",
            N_(
                "It diverged: loss {loss:,.1f}, chance {guessing:.2f}. Try a lower learning rate.",
                loss=loss,
                guessing=guessing,
            ),
        )
    if peak is not None and peak[1] > FAR_ABOVE * guessing:
        return Outcome(
            "diverged",
            Paragraph(
                "runs/diverged-peak", highest=peak[1], step=peak[0], loss=loss, guessing=guessing
            ),
        )
    return Outcome(
        "never-learned",
        N_(
            "It learned almost nothing: loss {loss:.2f}, chance {guessing:.2f}.",
            loss=loss,
            guessing=guessing,
        ),
    )


def _last_loss(curves: Curves) -> float | None:
    """Return the loss at the end: on unseen examples, else the mean of the last steps.

    It is that of the weights that were trained, beside which their own examples' loss stands.
    """
    step, measured = curves.validation.last("step"), curves.validation.last("loss")
    if step and measured is not None:
        return measured
    last = curves.steps["loss"][-_LAST_STEPS:]
    return float(last.mean()) if len(last) and np.isfinite(last).all() else None


def _peak(curves: Curves) -> tuple[int, float] | None:
    """Return the step of the largest loss of a batch, and that loss."""
    losses = curves.steps["loss"]
    if not np.isfinite(losses).any():
        return None
    at = int(np.nanargmax(losses))
    return int(curves.steps["step"][at]), float(losses[at])


Floats = npt.NDArray[np.float64]

MIN_PROGRESS = 0.15
"""Share of the way from which on a run has learned more than which answers are frequent."""
WINDOW = 10
"""Number of batches whose median is the loss at a step."""


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
