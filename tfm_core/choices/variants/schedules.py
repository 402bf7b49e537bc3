"""How the learning rate moves: up in the warm-up, then down in one way or another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(Variant):
    """share: from step, warm-up steps and total steps, counted from 1, to a share of the peak."""

    share: Callable[[int, int, int], float]


def _done(step: int, warm: int, total: int) -> float:
    return (step - warm) / max(1, total - warm + 1)  # the last step still moves a little


CONSTANT = Schedule(
    name="constant",
    source="Goyal et al. 2017, section 2.2: the warm-up",
    share=lambda step, warm, total: min(1.0, step / warm),
)
COSINE = Schedule(
    name="cosine",
    source="Loshchilov & Hutter 2017, Eq. 5, without restarts",
    share=lambda step, warm, total: (
        step / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * _done(step, warm, total))
    ),
)
LINEAR = Schedule(
    name="linear",
    source="Devlin et al. 2019, appendix A.2",
    share=lambda step, warm, total: step / warm if step < warm else 1.0 - _done(step, warm, total),
)
INVERSE_SQRT = Schedule(
    name="inverse-sqrt",
    source="Vaswani et al. 2017, section 5.3, with its peak at the learning rate",
    share=lambda step, warm, total: min(step / warm, math.sqrt(warm / step)),
)

_COOLING = 0.2  # share of the steps, as in Hägele et al. 2024, section 3


def _until_cooled(step: int, warm: int, total: int) -> float:
    remaining = (total + 1 - step) / (max(1, round(_COOLING * total)) + 1)
    return min(step / warm, 1.0, remaining)


WSD = Schedule(
    name="wsd",
    source="Hu et al. 2024 (MiniCPM), section 4; Hägele et al. 2024, section 3, linear",
    share=_until_cooled,
)

SCHEDULES = Registry("schedule", CONSTANT, COSINE, LINEAR, WSD, INVERSE_SQRT)
