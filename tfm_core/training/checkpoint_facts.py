"""The metadata of a checkpoint, read without torch and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from tfm_core.reading import MAX_STEP_NUMBER, Unreadable, is_number, is_whole, json_of
from tfm_core.sentences import N_
from tfm_core.stored import Step, Stored, WrongValue, checked, number
from tfm_core.training.progress import is_state

_MAX_SECONDS = 1e11


def _is_patience(state: object) -> bool:
    """Say whether a value is a state of ``Patience``; one from before it was counted is empty."""
    if not isinstance(state, dict):
        return False
    loss, step = state.get("best_loss"), state.get("best_step")
    return (
        (loss is None or is_number(loss, -1e300, 1e300))
        and (step is None or is_whole(step, 0, MAX_STEP_NUMBER))
        and is_whole(state.get("waited", 0), 0, MAX_STEP_NUMBER)
    )


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """The step of a checkpoint, the seconds trained, and states to restore.

    averaged: steps that went into its averaged weights, if it has any.
    """

    step: Step
    seconds: Annotated[float, number(0, _MAX_SECONDS)]
    scaler: dict[str, Any]
    patience: Annotated[dict[str, Any], checked(_is_patience)] = field(default_factory=dict)
    descent: Annotated[dict[str, Any], checked(is_state)] = field(default_factory=dict)
    averaged: Step = 0


_STORED = Stored(CheckpointFacts, "checkpoint.safetensors")
_CLAUSES: dict[str, str] = {  # by the field that is wrong, "" for all of them
    "": N_("it lacks the state of its training"),
    "step": N_("its step is invalid"),
    "seconds": N_("its seconds are invalid"),
    "averaged": N_("its number of averaged steps is invalid"),
}


def facts_of(metadata: Mapping[str, str] | None) -> CheckpointFacts:
    """Return what the metadata of a checkpoint's file say. Raises Unreadable."""
    try:
        return _STORED.read(json_of((metadata or {})["trainer"]))
    except WrongValue as wrong:
        clause = _CLAUSES.get(wrong.name, N_("its training state is invalid"))
    except (KeyError, ValueError):
        clause = _CLAUSES[""]
    raise Unreadable(clause)
