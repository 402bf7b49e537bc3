"""What a checkpoint says of itself beside its tensors: read without torch, and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfm_core.reading import MOST_STEPS, Unreadable, is_number, is_whole
from tfm_core.training.descent import is_state

_MOST_SECONDS = 1e11


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """The step of a checkpoint, the seconds trained, and the states of what else goes on.

    averaged: steps that went into its averaged weights, if it has any.
    """

    step: int
    seconds: float
    scaler: dict[str, Any]
    patience: dict[str, Any]
    descent: dict[str, Any] = field(default_factory=dict)
    averaged: int = 0


def facts_of(metadata: Mapping[str, str] | None) -> CheckpointFacts:
    """Return what the metadata of a checkpoint's file say. Raises Unreadable."""
    try:
        values = json.loads((metadata or {})["trainer"])
    except (KeyError, ValueError, RecursionError):
        raise Unreadable("it does not say where its training stood") from None
    if not isinstance(values, dict):
        raise Unreadable("it does not say where its training stood")
    step, seconds = values.get("step"), values.get("seconds")
    scaler, patience = values.get("scaler"), values.get("patience", {})
    descent, averaged = values.get("descent", {}), values.get("averaged", 0)
    if not is_whole(step, 0, MOST_STEPS):
        raise Unreadable("its step cannot be")
    if not is_number(seconds, 0, _MOST_SECONDS):
        raise Unreadable("its seconds cannot be")
    if not isinstance(scaler, dict) or not _is_patience(patience) or not is_state(descent):
        raise Unreadable("its state of the training cannot be")
    if not is_whole(averaged, 0, MOST_STEPS):
        raise Unreadable("the number of its averaged steps cannot be")
    return CheckpointFacts(step, float(seconds), scaler, patience, descent, averaged)


def _is_patience(state: object) -> bool:
    """Say whether a value is a state of ``Patience``; one from before it was counted is empty."""
    if not isinstance(state, dict):
        return False
    loss, step = state.get("best_loss"), state.get("best_step")
    return (
        (loss is None or is_number(loss, -1e300, 1e300))
        and (step is None or is_whole(step, 0, MOST_STEPS))
        and is_whole(state.get("waited", 0), 0, MOST_STEPS)
    )
