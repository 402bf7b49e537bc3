"""Advice on a whole experiment: its settings against each other, its data and what is known."""

from __future__ import annotations

from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.config.advice import Advice, advice
from tfm_core.config.caption_task import CaptionTaskConfig
from tfm_core.config.task import TextTaskConfig
from tfm_core.facts.learning_rate import usual_rate


def advised(experiment: Experiment) -> tuple[Advice, ...]:
    """Return what a person should know before this experiment is trained; warnings first."""
    said = advice(
        experiment.training,
        usual_rate=usual_rate(experiment),
        n_train=n_train(experiment),
        dropout=experiment.model.dropout,
    )
    return tuple(sorted(said, key=lambda one: not one.is_warning))


def n_train(experiment: Experiment) -> int | None:
    """Return the examples of the training split at most; None where only the data says it.

    A text task that has fewer different pairs than asked for shares out those.
    """
    task = experiment.task
    if isinstance(task, TextTaskConfig | CaptionTaskConfig):
        return task.n_train
    if isinstance(task, ImageTaskConfig):
        return task.facts.n_train - task.n_validation
    return None
