"""The model with the weights of one step, and a step at which it had learned half of its task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.progress.pictures import model_at
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.models.build import Model


def model_of_step(run: Run, step: int | None = None) -> tuple[Model, int]:
    """Return the model with the weights of a step, and that step; None is the last checkpoint.

    Raises ValueError, in a sentence.
    """
    if step is None or step == run.checkpoint_step:
        return model_of(run)
    return model_at(run, step), step


def half_trained_step(curves: Curves, steps: Sequence[int]) -> int:
    """Return the step whose validation score is nearest half way from guessing to the last one.

    steps: those with weights, ascending. The score is the share of whole answers that are right,
    or of tokens where no whole answer ever is. Between validations it is interpolated. Returns the
    last step where no other has weights, or where the model never got better than guessing.
    """
    last = steps[-1]
    measured = np.asarray(curves.unseen["step"])
    if len(steps) < 2 or not len(measured):
        return last
    score = np.nan_to_num(np.asarray(curves.unseen["sequence_accuracy"]))
    guessing = 0.0
    if score[-1] <= 0:
        score = np.asarray(curves.unseen["accuracy"])
        guessing = float(curves.started.get("chance", 0.0))
    if score[-1] <= guessing:
        return last
    reached = np.interp(steps, measured, score)
    return int(steps[int(np.abs(reached - (guessing + score[-1]) / 2).argmin())])
