"""Link of the mask lab: ``mask=causal``."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui.address import parameters, view_link
from tfm_core.inspect.masks.lab import MASKS

MASK = parameters.named(
    "mask",
    {name: mask.label for name, mask in MASKS.items()},
    first="combined",
    key="masks-kind",
    old=("masks-kind",),
    is_always_said=True,
)


@dataclass(frozen=True, slots=True)
class MasksView:
    """What the page shows."""

    mask: str = view_link.linked(MASK)
