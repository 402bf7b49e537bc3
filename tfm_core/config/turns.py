"""Settings that are turned while a training runs: each has its new value from a step on.

A turn is part of the training: with the same turns a training gives the same curve, bit for bit on
one CPU, whether it is resumed, repeated or forked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfm_core.config.experiment import Experiment
from tfm_core.sentences import StudentError

TURNABLE: tuple[str, ...] = (
    "training.learning_rate",
    "training.weight_decay",
    "training.label_smoothing",
    "training.batch_size",
    "model.dropout",
)
"""The settings that can be turned, as paths in an experiment."""


@dataclass(frozen=True, slots=True)
class Turn:
    """From ``step`` on, counted from 1, a setting has another value. setting: one of TURNABLE."""

    step: int
    setting: str
    value: float


def checked(experiment: Experiment, turn: Turn) -> Turn:
    """Return the turn, its value as the setting has it. Raises StudentError for a wrong one."""
    if turn.setting not in TURNABLE:
        raise StudentError("{setting} cannot change during a training.", setting=turn.setting)
    part, _dot, name = turn.setting.partition(".")
    values = getattr(experiment, part).model_dump() | {name: turn.value}
    valid = experiment.replace(**{part: values})
    return Turn(turn.step, turn.setting, getattr(getattr(valid, part), name))


def turn_of(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn that an event's record tells, or None where it is none."""
    step, setting, value = (record.get(name) for name in ("step", "setting", "value"))
    if setting not in TURNABLE or not isinstance(step, int) or not isinstance(value, int | float):
        return None
    return Turn(step, str(setting), value)
