"""The state of the page in its address."""

from __future__ import annotations

from pages.i18n import N_
from pages.ui.address import parameters

VIEW = parameters.named(
    "view",
    {
        "contest": N_("Side by side"),
        "length": N_("Time against length"),
        "history": N_("2014 to 2018"),
    },
    key="before-view",
)
