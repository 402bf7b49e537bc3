"""What the page on writing shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link

PART = view_link.named(
    "part",
    {
        "read": _("Read"),
        "write": _("Write"),
        "lens": _("Lens"),
        "add": _("Add"),
        "train": _("Own text"),
    },
    key="gpt-part",
)


@dataclass(frozen=True, slots=True)
class GptView:
    """What the page shows."""

    part: str = view_link.linked(PART)
