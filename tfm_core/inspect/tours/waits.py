"""What a tour waits for in a training: whether it has happened, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import Row
from tfm_core.runs.curves import Curves
from tfm_core.runs.record.outcome import MIN_PROGRESS, loss_progress
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, percent


@dataclass(frozen=True, slots=True)
class TourRun:
    """The run of a tour. curves: of it so far. is_answered: whether a question was answered.

    What takes seconds to measure is left out before that.
    """

    run: Run
    curves: Curves
    is_answered: bool = False

    @property
    def can_be_measured(self) -> bool:
        """Whether an answer is wanted, and there are weights to measure it with."""
        return self.is_answered and self.run.has_checkpoint


@dataclass(frozen=True, slots=True)
class Waited:
    """Whether something has happened, and a sentence with its numbers, where they say more."""

    has_happened: bool
    sentence: str


def left_guessing(on: TourRun) -> Waited:
    """Wait until the training loss has come further than the answers' frequencies take it."""
    progress = loss_progress(on.curves)
    if progress is None or not len(progress.steps):
        return Waited(False, N_("The first step is not done yet."))
    step = guessing_left_at(on.curves)
    if step is not None:
        return Waited(True, N_("The loss left guessing at step {step}.", step=f"{step:,}"))
    values = {"loss": float(progress.running[-1]), "guessing": progress.guessing}
    return Waited(False, N_("Loss {loss:.2f}; guessing is {guessing:.2f}.", **values))


def guessing_left_at(curves: Curves) -> int | None:
    """Return the first step with MIN_PROGRESS or more of the way done, None before it."""
    progress = loss_progress(curves)
    if progress is None:
        return None
    reached = np.flatnonzero(progress.shares >= MIN_PROGRESS)
    return int(progress.steps[reached[0]]) if len(reached) else None


def head_aligns(on: TourRun) -> Waited:
    """Wait until a head has most of its attention on the true source words."""
    best = alignment.best_head(newest_alignment(on.run))
    if best is None:
        return Waited(False, N_("No snapshot can be scored yet."))
    values = {"layer": best["layer"], "head": best["head"], "share": percent(best["share"])}
    if best["share"] >= aligns_from(best["chance"]):
        sentence = N_("Layer {layer}, head {head}: {share} on the true source words.", **values)
        return Waited(True, sentence)
    return Waited(False, N_("Best so far: layer {layer}, head {head}, {share}.", **values))


def is_trained(on: TourRun) -> Waited:
    """Wait until a run has ended, with weights."""
    status = on.run.status
    if status.is_active or not on.run.has_checkpoint:
        values = {"step": f"{status.step:,}", "total": f"{status.total_steps:,}"}
        return Waited(False, N_("Training: step {step} of {total}.", **values))
    return Waited(True, "")


def aligns_from(chance: float) -> float:
    """Return the share of attention on true source words from which a head is said to align.

    chance: the share of even attention.
    """
    return max(alignment.LEARNED, 2 * chance)


def newest_alignment(run: Run) -> list[Row]:
    """Return the scores of the heads in the newest readable snapshot; none without any."""
    for step in reversed(run.snapshot_steps()):
        try:
            return alignment.of_step(run, step)
        except (OSError, ValueError):  # being written, or damaged
            continue
    return []
