"""What the page on positions shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link

VIEW = view_link.named(
    "view",
    {
        "sinusoidal": _("Sinusoidal"),
        "learned": _("Learned"),
        "rotary": _("Rotary"),
        "alibi": _("ALiBi"),
        "patches": _("Patches, 2-D"),
        "shuffle": _("Shuffle the words"),
        "race": _("Which learns best?"),
    },
    key="positions-view",
    old=("positions-view",),
)


@dataclass(frozen=True, slots=True)
class PositionsView:
    """What the page shows."""

    view: str = view_link.linked(VIEW)
