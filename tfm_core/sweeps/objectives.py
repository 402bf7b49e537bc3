"""The metric of a sweep: a validation metric, and whether more or less of it is better.

It is measured for the weights that count: the last, or with patience the best by validation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tfm_core.choices.config import Experiment
from tfm_core.runs.curves import Curves
from tfm_core.sentences import N_, StudentError


@dataclass(frozen=True, slots=True)
class Objective:
    """A figure of the validation: its column, its label, and which direction is better."""

    name: str
    label: str
    is_maximized: bool

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """Return the direction as Optuna calls it."""
        return "maximize" if self.is_maximized else "minimize"

    def said(self, value: float) -> str:
        """Return a figure in words: a share as per cent, a loss with four digits."""
        return f"{100 * value:.1f}%" if self.is_maximized else f"{value:.4g}"


OBJECTIVES: dict[str, Objective] = {
    one.name: one
    for one in (
        Objective("loss", N_("validation loss"), is_maximized=False),
        Objective("accuracy", N_("validation accuracy"), is_maximized=True),
        Objective("sequence_accuracy", N_("sequence accuracy"), is_maximized=True),
    )
}


def fitting(experiment: Experiment) -> list[Objective]:
    """Return the objectives that a task measures."""
    has_sequences = experiment.task.facts.answer in ("sequence", "blanks")
    return [one for one in OBJECTIVES.values() if has_sequences or one.name != "sequence_accuracy"]


def check(experiment: Experiment, name: str) -> None:
    """Raise StudentError, in a sentence, where a task has no such figure."""
    known = [one.name for one in fitting(experiment)]
    if name not in known:
        raise StudentError(
            "{task} does not measure {name}. Choose one of {known}.",
            task=experiment.task.facts.label,
            name=name,
            known=", ".join(known),
        )


def value(objective: Objective, curves: Curves, experiment: Experiment) -> float | None:
    """Return the figure of a training that is over, None where it was never measured."""
    series = curves.unseen
    if experiment.trained.keeps_best:
        row = curves.best_validation()
        found = None if row is None else float(series[objective.name][row])
    else:
        found = series.last(objective.name)
        if series.last("step") == 0:
            found = None
    return found if found is not None and math.isfinite(found) else None
