"""A decoder that sees what it is to write: no causal mask, or one on the wrong axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_
from tfm_core.variants.forms import Causality

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
    short=N_("no causal mask"),
    help=N_(
        "While it trains, a token sees those behind it, and so its own answer: the curves look "
        "perfect, and what the model writes by itself is wrong."
    ),
    source="Vaswani et al. 2017, section 3.2.3, without the mask",
    place="decoder",
    apply=_unmask,
    form=Causality(
        name="none",
        sees_past=True,
        sees_future=True,
        note="no causal mask",
        rule=lambda window: rf"|i - j| \le {window}" if window else None,
        function="unmasked",
        cut=None,
        says="a query sees every key, those behind it too",
    ),
    means=N_(
        "While it trained, a token saw those behind it, its own answer among them. It learned "
        "to copy that, and is lost where nobody writes the answer first."
    ),
    probe="sight",
)
MASK_TRANSPOSED = Mistake(
    name="mask-transposed",
    label=N_("The causal mask on the wrong axis"),
    short=N_("mask on the wrong axis"),
    help=N_(
        "The causal mask transposed: a token sees itself and what follows it, its answer first, "
        "and nothing of what came before."
    ),
    source="Vaswani et al. 2017, section 3.2.3, with keys and queries swapped in the mask",
    place="decoder",
    apply=_transpose,
    form=Causality(
        name="transposed",
        sees_past=False,
        sees_future=True,
        note="causal mask transposed",
        rule=lambda window: rf"i \le j \le i + {window}" if window else r"j \ge i",
        function="transposed",
        cut=".triu()",
        says="a query sees itself and the keys behind it",
    ),
    means=N_(
        "With keys and queries swapped, a token saw what follows it, and nothing of what came "
        "before."
    ),
    probe="sight",
)
