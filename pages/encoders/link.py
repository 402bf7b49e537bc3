"""What the page on encoders shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui import parameters, view_link

VIEW = parameters.named(
    "view",
    {
        "sentiment": N_("Sentiment"),
        "blanks": N_("Fill in the blank"),
        "patches": N_("CLS and patches"),
    },
    key="encoders-view",
    old=("encoders-view",),
)


@dataclass(frozen=True, slots=True)
class EncodersView:
    """What the page shows."""

    view: str = view_link.linked(VIEW)
