"""Settings that change while a training runs.

A turn is part of the training: the same turns give the same curve, bit for bit on one CPU, also
when the run is resumed or forked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tfm_core.choices.config.base import ConfigError
from tfm_core.choices.config.experiment import Experiment
from tfm_core.sentences import StudentError

TURNABLE: tuple[str, ...] = (
    "training.learning_rate",
    "training.weight_decay",
    "training.label_smoothing",
    "training.batch_size",
    "model.dropout",
)
"""The settings that can change during a training, as paths in an experiment."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A setting, one of TURNABLE, has another value from ``step`` on, counted from 1."""

    step: int
    setting: str
    value: float


def checked(experiment: Experiment, turn: Turn) -> Turn:
    """Return the turn with its value as the setting stores it. Raises StudentError."""
    if turn.setting not in TURNABLE:
        raise StudentError("{setting} cannot change during training.", setting=turn.setting)
    part, _dot, name = turn.setting.partition(".")
    return Turn(turn.step, turn.setting, getattr(getattr(turned(experiment, [turn]), part), name))


def possible(experiment: Experiment, turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return the turns that the experiment allows, by step; a damaged file may have others."""
    found = []
    for turn in turns:
        with suppress(ConfigError):
            found.append(checked(experiment, turn))
    return tuple(sorted(found, key=attrgetter("step")))


def turned(experiment: Experiment, turns: Iterable[Turn]) -> Experiment:
    """Return the experiment with the values of its turns. Raises ConfigError."""
    for turn in turns:
        part, _dot, name = turn.setting.partition(".")
        values = getattr(experiment, part).model_dump() | {name: turn.value}
        experiment = experiment.replace(**{part: values})
    return experiment


def turn_of(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn in an event's record, or None."""
    step, setting, value = (record.get(name) for name in ("step", "setting", "value"))
    if setting not in TURNABLE or not isinstance(step, int) or not isinstance(value, int | float):
        return None
    return Turn(step, str(setting), value)
