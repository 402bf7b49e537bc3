"""Experiments small enough to be watched in seconds, or long enough never to end meanwhile."""

from typing import Any

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections


def experiment(
    family: str = "encoder-decoder",
    task: str = "copy",
    *,
    steps: int,
    model: dict[str, Any] | None = None,
    task_settings: dict[str, Any] | None = None,
    **training: Any,
) -> Experiment:
    """Return the defaults of a family and a task, except for what is said."""
    values = default_sections(family, task)
    values["model"] |= model or {}
    values["task"] |= task_settings or {}
    values["training"] |= {"steps": steps, **training}
    return Experiment.parse(values)


LONG = experiment(steps=50_000)
"""Trains 20 steps a second on the servers of tests and outlives every test, which stops it."""

SHORT = experiment(steps=60, validate_every=20)
"""Ends within seconds."""
