"""Advice on a whole experiment: its settings against each other, its data and what is known."""

from __future__ import annotations

from tfm_core.config import Experiment
from tfm_core.config.advice import Advice, advice
from tfm_core.facts.learning_rate import usual_rate


def advised(experiment: Experiment) -> tuple[Advice, ...]:
    """Return what a person should know before this experiment is trained; warnings first."""
    said = advice(
        experiment.training,
        usual_rate=usual_rate(experiment),
        n_train=experiment.task.n_training,
        dropout=experiment.model.dropout,
    )
    return tuple(sorted(said, key=lambda one: not one.is_warning))
