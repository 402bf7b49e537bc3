"""Which experiment the page shows, in its address: ``experiment=no-positions``."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui import view_link
from tfm_core.inspect.experiments import DEMONSTRATIONS

EXPERIMENT = view_link.named(
    "experiment",
    {name: one.title for name, one in DEMONSTRATIONS.items()},
    key="experiment-shown",
)


@dataclass(frozen=True, slots=True)
class ExperimentsView:
    """What the page shows."""

    experiment: str = view_link.linked(EXPERIMENT)
