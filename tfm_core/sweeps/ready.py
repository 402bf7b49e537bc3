"""A sweep that is ready to start: small enough to be over before one has read what it does."""

from __future__ import annotations

from datetime import UTC, datetime

from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.labels import MAX_NAME
from tfm_core.sweeps.plan import Plan
from tfm_core.sweeps.space import Choices, Range

PRESET = "copy"
STEPS = 300
"""Half of the preset's: a good rate has learned it then, and a poor one hardly anything."""


def plan(owner: str | None = None) -> Plan:
    """Return the plan: four learning rates with a warm-up and without one, on copying."""
    preset = PRESETS[PRESET]
    base = preset.experiment
    return Plan(
        name="Rate and warm-up",
        base=base.replace(training=base.trained.replace(steps=STEPS).model_dump()),
        space=(
            Range("training.learning_rate", 0.0003, 0.03, is_log=True, points=4),
            Choices("training.warmup", (0.0, 0.1)),
        ),
        created=now(),
        search="grid",
        max_runs=8,
        owner=owner,
    )


def proposed(base: Experiment, name: str) -> Plan:
    """Return what is likely asked of any other experiment: TPE over rate and warm-up."""
    rate = base.trained.learning_rate
    return Plan(
        name=name[:MAX_NAME].strip() or "Sweep",
        base=base,
        space=(
            Range("training.learning_rate", rate / 10, min(10 * rate, 10.0), is_log=True),
            Range("training.warmup", 0.0, 0.3),
        ),
        created=now(),
        search="tpe",
        max_runs=16,
    )


def now() -> str:
    """Return the moment as a plan says it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
