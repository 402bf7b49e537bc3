"""What the page on positions shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui import view_link

VIEW = view_link.named(
    "view",
    {
        "sinusoidal": N_("Sinusoidal"),
        "learned": N_("Learned"),
        "rotary": N_("Rotary"),
        "alibi": N_("ALiBi"),
        "patches": N_("Patches, 2-D"),
        "shuffle": N_("Shuffle the words"),
        "race": N_("Which learns best?"),
    },
    key="positions-view",
    old=("positions-view",),
)


@dataclass(frozen=True, slots=True)
class PositionsView:
    """What the page shows."""

    view: str = view_link.linked(VIEW)
