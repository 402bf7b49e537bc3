"""The state of the page in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui.address import parameters, view_link

VIEW = parameters.named(
    "view",
    {
        "contest": N_("Side by side"),
        "length": N_("Time against length"),
        "history": N_("2014 to 2018"),
    },
    key="before-view",
    old=("before-view",),
)


@dataclass(frozen=True, slots=True)
class BeforeView:
    """What the page shows."""

    view: str = view_link.linked(VIEW)
