"""Mistakes that people make in the code of a Transformer: one file a subject, one record a mistake.

The layers are as they should be: a mistake is an intervention on a healthy model. What code,
equation and walk make of it stands with the setting that asks for it, in ``tfm_core.variants``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tfm_core.mistakes.causal_mask import MASK_TRANSPOSED, NO_CAUSAL_MASK
from tfm_core.mistakes.loss import SOFTMAX_BEFORE_LOSS
from tfm_core.mistakes.matrices import NO_OUTPUT_PROJECTION, SLICED_HEADS
from tfm_core.mistakes.mistake import Mistake
from tfm_core.mistakes.norms import SHARED_NORM
from tfm_core.mistakes.residuals import (
    FEED_FORWARD_RESIDUAL_FROM_NORMED,
    NO_RESIDUALS,
    RESIDUAL_FROM_NORMED,
)
from tfm_core.mistakes.scale import NO_SCALE, SCALED_BY_D_MODEL
from tfm_core.variants.record import Registry

if TYPE_CHECKING:
    from torch import nn

__all__ = ["MISTAKES", "Mistake", "asked_for", "make"]

MISTAKES = Registry(
    "mistake",
    NO_CAUSAL_MASK,
    MASK_TRANSPOSED,
    NO_RESIDUALS,
    RESIDUAL_FROM_NORMED,
    FEED_FORWARD_RESIDUAL_FROM_NORMED,
    SHARED_NORM,
    NO_OUTPUT_PROJECTION,
    SLICED_HEADS,
    NO_SCALE,
    SCALED_BY_D_MODEL,
    SOFTMAX_BEFORE_LOSS,
)


def asked_for(section: str, settings: object) -> tuple[str, ...]:
    """Return the names of the mistakes that the settings of a section, such as "model", ask for."""
    return tuple(name for name, one in MISTAKES.items() if one.is_asked_for(section, settings))


def make(names: Iterable[str], model: nn.Module) -> None:
    """Make mistakes in a healthy model, or in a part of one, in place.

    Raises UnknownVariant, and ValueError for a mistake that has no place there.
    """
    for mistake in (MISTAKES[name] for name in names):
        if mistake.apply is None:
            raise ValueError(f"The mistake {mistake.name!r} is made in training, not in a model.")
        mistake.apply(model)
