"""How a training came out that is no success: it diverged, never left guessing, or crammed.

Said of the curves alone, by how far they came on the ``way`` from guessing to the lowest possible
loss. What came less than ``MIN`` of it on unseen examples has learned little more than which
answers are frequent; where the batches of training came that far all the same, it learned those by
heart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfm_core.runs.curves import Curves
from tfm_core.runs.status import Status
from tfm_core.runs.way import MIN, way_of
from tfm_core.sentences import N_
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
    way, loss = way_of(curves), _last_loss(curves)
    if status.state != "finished" or way is None or loss is None:
        return None
    if way.share(loss) >= MIN:
        return None
    guessing, peak = way.guessing, _peak(curves)
    if len(way.shares) and way.shares[-1] >= MIN:
        return Outcome(
            "by-heart",
            N_(
                "It learned its own examples by heart: their loss ended at {own:.2f}, that of "
                "unseen ones at {loss:,.2f}, and guessing alone has {guessing:.2f}.",
                own=float(way.running[-1]),
                loss=loss,
                guessing=guessing,
            ),
        )
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
