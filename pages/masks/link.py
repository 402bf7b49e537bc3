"""Link of the mask lab: ``mask=causal``."""

from __future__ import annotations

from pages.ui.address import parameters
from tfm_core.inspect.masks.lab import MASKS

MASK = parameters.named(
    "mask",
    {name: mask.label for name, mask in MASKS.items()},
    first="combined",
    key="masks-kind",
    is_always_said=True,
)
