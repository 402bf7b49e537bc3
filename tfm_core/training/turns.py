"""Settings that are turned while a training runs: each has its new value from a step on.

A turn is part of the training: with the same turns a training gives the same curve, bit for bit on
one CPU, whether it is resumed, repeated or forked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from tfm_core.config import Experiment
from tfm_core.reading import is_number
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
    """After ``step`` updates a setting gets another value. setting: one of TURNABLE."""

    step: int
    setting: str
    value: float

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as a JSON object."""
        return {"step": self.step, "setting": self.setting, "value": self.value}


def checked(experiment: Experiment, turn: Turn) -> Turn:
    """Return the turn, its value as the setting has it. Raises StudentError for a wrong one."""
    if turn.setting not in TURNABLE:
        raise StudentError("{setting} cannot change during a training.", setting=turn.setting)
    part, _dot, name = turn.setting.partition(".")
    values = getattr(experiment, part).model_dump() | {name: turn.value}
    valid = experiment.replace(**{part: values})
    return Turn(turn.step, turn.setting, getattr(getattr(valid, part), name))


def read(values: object) -> tuple[Turn, ...]:
    """Return the turns of a JSON list, in order; what is not one is left out."""
    if not isinstance(values, list):
        return ()
    return tuple(
        Turn(one["step"], one["setting"], one["value"])
        for one in values
        if isinstance(one, Mapping)
        and one.get("setting") in TURNABLE
        and isinstance(one.get("step"), int)
        and is_number(one.get("value"))
    )


def set_dropout(model: nn.Module, p: float) -> None:
    """Give every dropout of a model another probability."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = p  # of attention and of recurrent layers, which call it themselves
