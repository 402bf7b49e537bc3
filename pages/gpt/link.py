"""What the page on writing shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui import parameters, view_link

PART = parameters.named(
    "part",
    {
        "read": N_("Read"),
        "write": N_("Write"),
        "lens": N_("Lens"),
        "add": N_("Add"),
        "train": N_("Own text"),
    },
    key="gpt-part",
)


@dataclass(frozen=True, slots=True)
class GptView:
    """What the page shows."""

    part: str = view_link.linked(PART)
