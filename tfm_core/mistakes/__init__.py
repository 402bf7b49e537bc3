"""Mistakes that people make in the code of a Transformer, one record each.

A mistake is an intervention on a healthy model; its record also says what generated code,
equations, diagrams and walks change with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from tfm_core.mistakes.attention import (
    KEYS_AT_QUERY_LENGTH,
    LINEAR_SCORE,
    NO_OUTPUT_PROJECTION,
    NO_SCALE,
    SCALED_BY_D_MODEL,
    SLICED_HEADS,
)
from tfm_core.mistakes.blocks import (
    DROPOUT_AFTER_NORM,
    FEED_FORWARD_RESIDUAL_FROM_NORMED,
    NO_RESIDUALS,
    RESIDUAL_FROM_NORMED,
    SAMPLE_DEVIATION,
    SHARED_NORM,
)
from tfm_core.mistakes.loss import ARGMAX_BEFORE_LOSS, SOFTMAX_BEFORE_LOSS, TARGET_NOT_SHIFTED
from tfm_core.mistakes.masks import FLOAT_MASK, MASK_TRANSPOSED, NO_CAUSAL_MASK, PADDING_ON_QUERIES
from tfm_core.mistakes.mistake import Mistake, MistakePlace
from tfm_core.variants.record import Named, Registry, resolve

if TYPE_CHECKING:
    from torch import nn

__all__ = ["MISTAKES", "Mistake", "form_of", "forms", "made_in", "make"]

F = TypeVar("F", bound=Named)

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
    ARGMAX_BEFORE_LOSS,
    TARGET_NOT_SHIFTED,
    PADDING_ON_QUERIES,
    FLOAT_MASK,
    KEYS_AT_QUERY_LENGTH,
    DROPOUT_AFTER_NORM,
    SAMPLE_DEVIATION,
    LINEAR_SCORE,
)


def made_in(*places: MistakePlace) -> Registry[Mistake]:
    """Return the mistakes that a configuration can ask for in some places."""
    names = (name for name, mistake in MISTAKES.items() if mistake.place in places)
    return MISTAKES.only(*names)


def forms(kind: type[F]) -> tuple[F, ...]:
    """Return the forms of a kind, such as ``Residual``, that mistakes give a part of a model."""
    return tuple(m.form for m in MISTAKES.values() if isinstance(m.form, kind))


def form_of(mistakes: Iterable[str], registry: Registry[Named]) -> str:
    """Return the name of the form that a part has with some mistakes; the first is healthy."""
    healthy = next(iter(registry))
    forms = (MISTAKES[name].form for name in mistakes)
    return next((f.name for f in forms if f and type(f) is type(registry[healthy])), healthy)


def make(names: Iterable[str], model: nn.Module) -> None:
    """Make mistakes in a healthy model, or a part of one. Raises UnknownVariant and ValueError."""
    for mistake in (MISTAKES[name] for name in names):
        if mistake.apply is None:
            raise ValueError(f"The mistake {mistake.name!r} is not made in a model.")
        resolve(mistake.apply)(model)
