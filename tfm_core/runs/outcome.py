"""How a training came out that ended without learning: it diverged, or it never left guessing.

Said of the curves alone. A run is held against guessing every answer alike, whose loss is
ln(classes), and against the lowest loss that its targets allow: what has not come ``LEAST`` of the
way from the one to the other has learned little more than which answers are frequent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfm_core.runs.curves import Curves
from tfm_core.runs.status import Status
from tfm_core.sentences import N_
from tfm_core.training.divergence import is_of_divergence

OutcomeKind = Literal["diverged", "never-learned"]

LEAST = 0.15
"""Share of the way from guessing to the lowest possible loss from which on a run has learned."""
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
    guessing, loss = curves.started.get("start_loss"), _last_loss(curves)
    if status.state != "finished" or guessing is None or loss is None:
        return None
    floor = curves.started.get("floor") or 0.0
    if guessing - loss >= LEAST * max(0.0, guessing - floor):
        return None
    peak = _peak(curves)
    if loss > FAR_ABOVE * guessing:
        return Outcome(
            "diverged",
            N_(
                "It diverged: its loss ended at {loss:,.1f}, and guessing alone has "
                "{guessing:.2f}. A lower learning rate would help.",
                loss=loss,
                guessing=guessing,
            ),
        )
    if peak is not None and peak[1] > FAR_ABOVE * guessing:
        return Outcome(
            "diverged",
            N_(
                "It diverged: its loss rose to {highest:,.0f} at step {step:,} and ended at "
                "{loss:.2f}, where guessing alone has {guessing:.2f}. A lower learning rate would "
                "help.",
                highest=peak[1],
                step=peak[0],
                loss=loss,
                guessing=guessing,
            ),
        )
    return Outcome(
        "never-learned",
        N_(
            "It learned next to nothing: its loss ended at {loss:.2f}, and guessing alone has "
            "{guessing:.2f}.",
            loss=loss,
            guessing=guessing,
        ),
    )


def _last_loss(curves: Curves) -> float | None:
    """Return the loss at the end: on unseen examples, else the mean of the last steps."""
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
