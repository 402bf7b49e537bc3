"""What the page on attention before the Transformer shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link

VIEW = view_link.named(
    "view",
    {
        "contest": _("Side by side"),
        "length": _("Time against length"),
        "history": _("2014 to 2017"),
    },
    key="before-view",
    old=("before-view",),
)


@dataclass(frozen=True, slots=True)
class BeforeView:
    """What the page shows."""

    view: str = view_link.linked(VIEW)
