"""The preset that is most like an experiment: what is known of that one is told of this one."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.config import Experiment
from tfm_core.presets import PRESETS, Preset


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
    """Return the settings of the task, and those of the model that are no numbers."""
    named = experiment.model.model_dump().items()
    chosen = {(name, value) for name, value in named if isinstance(value, str | bool)}
    return chosen | set(experiment.task.model_dump().items())
