"""Advice on an experiment: what the preset most like it learns with, and learning rates to try."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.choices.config import Experiment, built
from tfm_core.choices.config.advice import Advice, advice
from tfm_core.choices.presets import PRESETS, Preset
from tfm_core.choices.variants.training import OPTIMISERS


def usual_rate(experiment: Experiment) -> float:
    """Return the learning rate of the most similar preset, or the optimiser's usual one.

    What a preset learns with says nothing of an optimiser that learns at other rates than its own:
    Muon's are several times those of Adam and AdamW.
    """
    preset, training = nearest_preset(experiment).experiment.trained, experiment.trained
    usual = OPTIMISERS[training.optimizer].usual_rate
    if usual is None or usual == OPTIMISERS[preset.optimizer].usual_rate:
        return preset.learning_rate
    return usual


def calmer_rate(experiment: Experiment) -> float:
    """Return a rate to try where a training diverged: the usual one, or else a tenth of its own."""
    usual, rate = usual_rate(experiment), experiment.trained.learning_rate
    return usual if rate > 2 * usual else rate / 10


@lru_cache(maxsize=256)
def nearest_preset(experiment: Experiment) -> Preset:
    """Return the preset that is nearest in family, task and what a model chooses by name.

    The model's sizes count for nothing: two that differ in those alone have the same.
    """
    chosen = _names(experiment)

    def likeness(preset: Preset) -> tuple[bool, bool, int]:
        other = preset.experiment
        is_same_family = other.model.family == experiment.model.family
        is_same_task = other.task.name == experiment.task.name
        return is_same_family, is_same_task, len(chosen & _names(other))

    return max(PRESETS.values(), key=likeness)  # of equals the first


def _names(experiment: Experiment) -> set[tuple[str, object]]:
    """Return the settings of the task, and of the model those that are no sizes."""
    named = experiment.model.model_dump()
    chosen = {(name, value) for name, value in named.items() if isinstance(value, str | bool)}
    chosen.add(("has experts", named.get("n_experts", 0) > 1))
    return chosen | set(experiment.task.model_dump().items())


def advised(experiment: Experiment) -> tuple[Advice, ...]:
    """Return what a person should know before this experiment is trained; warnings first."""
    notes = advice(
        experiment.trained,
        usual_rate=usual_rate(experiment),
        n_train=experiment.task.n_training,
        dropout=built(experiment.model).dropout,
    )
    return tuple(sorted(notes, key=lambda advice: not advice.is_warning))
