"""The walk through one model: every step of its family, in order."""

from __future__ import annotations

from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import WalkStep
from tfm_core.variants.families import FAMILIES


def walk(subject: Subject, *, layer: int = 0, example: int = 0) -> tuple[WalkStep, ...]:
    """Return the steps that this model has, in order; each has a name of its own.

    layer: the block that is opened, from 0; a stack with fewer opens its last one. example: the
    one that the questions are about.
    """
    steps: tuple[WalkStep, ...] = FAMILIES[subject.config.family].part("walk")(
        subject, layer, example
    )
    return steps
