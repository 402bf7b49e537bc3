"""Which experiment the page shows, in its address: ``experiment=no-positions``."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui import parameters, view_link
from tfm_core.inspect.experiments import DEMONSTRATIONS

EXPERIMENT = parameters.named(
    "experiment",
    {name: one.title for name, one in DEMONSTRATIONS.items()},
    key="experiment-shown",
)


@dataclass(frozen=True, slots=True)
class ExperimentsView:
    """What the page shows."""

    experiment: str = view_link.linked(EXPERIMENT)
