"""The model with the weights of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.progress.pictures import model_at
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
