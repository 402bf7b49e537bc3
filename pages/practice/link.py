"""Link of the practice page."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui.address import parameters, view_link

STEP = parameters.named(
    "step",
    {
        "split": N_("1 Split"),
        "train": N_("2 Train and watch"),
        "early": N_("3 Stop early"),
        "augment": N_("4 Augment"),
        "errors": N_("5 Look at errors"),
        "save": N_("6 Save and load"),
        "test": N_("7 Test, once"),
    },
    key="practice-step",
    old=("practice-step",),
)


@dataclass(frozen=True, slots=True)
class PracticeView:
    """What the page shows."""

    step: str = view_link.linked(STEP)
