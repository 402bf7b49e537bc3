"""The walk through one model: every step of its family, in order."""

from __future__ import annotations

from tfm_core.config import CaptionerConfig, RecurrentConfig, ViTConfig
from tfm_core.inspect.walk import captioner, recurrent, text, vit
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import WalkStep


def walk(subject: Subject, *, layer: int = 0, example: int = 0) -> tuple[WalkStep, ...]:
    """Return the steps that this model has, in order; each has a name of its own.

    layer: the block that is opened, from 0; a stack with fewer opens its last one. example: the
    one that the questions are about.
    """
    if isinstance(subject.config, ViTConfig):
        return vit.steps(subject, layer, example)
    if isinstance(subject.config, CaptionerConfig):
        return captioner.steps(subject, layer, example)
    if isinstance(subject.config, RecurrentConfig):
        return recurrent.steps(subject, example)
    return text.steps(subject, layer, example)
