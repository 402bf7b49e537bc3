"""Link of the speed page: the comparison; ``model_choice`` adds the model."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui.address import parameters, view_link
from pages.ui.settings.model_choice import ModelView
from tfm_core.inspect.speed.registry import COMPARISONS

COMPARE = parameters.named(
    "compare",
    {name: one.label for name, one in COMPARISONS.items()},
    key="speed-compare",
    is_always_said=True,
)


@dataclass(frozen=True, slots=True)
class SpeedView(ModelView):
    """What the page shows."""

    compare: str = view_link.linked(COMPARE)
