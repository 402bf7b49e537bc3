"""The walk through one model: every step of its family, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import Seen, WalkStep
from tfm_core.variants.families import FAMILIES


def walk(subject: Subject, *, layer: int = 0, example: int = 0) -> tuple[WalkStep, ...]:
    """Return the steps that this model has, in order; each has a name of its own.

    layer: the block that is opened, from 0; a stack with fewer opens its last one. example: the
    one that the questions are about.
    """
    made = FAMILIES[subject.config.family].walk()
    steps = made(subject, layer, example)
    if subject.numbers is None:
        return steps
    twins = made(subject.numbers, layer, 0)
    return tuple(_with_numbers(step, twin) for step, twin in zip(steps, twins, strict=True))


def _with_numbers(step: WalkStep, twin: WalkStep) -> WalkStep:
    """Return a step of shapes with the numbers of the same step."""
    values = {one.name: one.value for one in twin.tensors}

    def with_its_own(tensors: Sequence[Seen]) -> tuple[Seen, ...]:
        return tuple(replace(one, numbers=values[one.name]) for one in tensors)

    return replace(
        step,
        before=with_its_own(step.before),
        after=with_its_own(step.after),
        extra=with_its_own(step.extra),
    )
