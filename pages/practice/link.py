"""Which step of good practice is shown, in the address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link

STEP = view_link.named(
    "step",
    {
        "split": _("1 Split"),
        "train": _("2 Train and watch"),
        "early": _("3 Stop early"),
        "augment": _("4 Augment"),
        "errors": _("5 Look at errors"),
        "save": _("6 Save and load"),
        "test": _("7 Test, once"),
    },
    key="practice-step",
    old=("practice-step",),
)


@dataclass(frozen=True, slots=True)
class PracticeView:
    """What the page shows."""

    step: str = view_link.linked(STEP)
