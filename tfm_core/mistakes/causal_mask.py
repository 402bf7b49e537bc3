"""A decoder that sees what it is to write: no causal mask, or one on the wrong axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_
from tfm_core.variants.causalities import CAUSALITIES

if TYPE_CHECKING:
    from torch import nn


def _unmask(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import unmasked

    _check_writes(model).order_mask = unmasked  # type: ignore[assignment]


def _transpose(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import transposed_mask

    _check_writes(model).order_mask = transposed_mask  # type: ignore[assignment]


def _check_writes(model: nn.Module) -> nn.Module:
    """Return the model. Raises ValueError where it has no causal mask to be wrong."""
    if not hasattr(model, "order_mask"):
        raise ValueError(f"A {type(model).__name__} writes no text, so it has no causal mask.")
    return model


NO_CAUSAL_MASK = Mistake(
    name="no-causal-mask",
    label=N_("No causal mask in the decoder"),
    help=CAUSALITIES["none"].help,
    source=CAUSALITIES["none"].source,
    settings={"model.causality": "none"},
    apply=_unmask,
    changes_attention_weights=False,
    means=N_(
        "While it trained, a token saw those behind it, its own answer among them. It learned "
        "to copy that, and is lost where nobody writes the answer first."
    ),
    probe="sight",
)
MASK_TRANSPOSED = Mistake(
    name="mask-transposed",
    label=N_("The causal mask on the wrong axis"),
    help=CAUSALITIES["transposed"].help,
    source=CAUSALITIES["transposed"].source,
    settings={"model.causality": "transposed"},
    apply=_transpose,
    changes_attention_weights=False,
    means=N_(
        "With keys and queries swapped, a token saw what follows it, and nothing of what came "
        "before."
    ),
    probe="sight",
)
