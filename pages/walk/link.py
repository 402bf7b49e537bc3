"""What the walk shows, in its address: which model, which step, inside which block."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui import view_link
from pages.ui.model_choice import ModelView

MINE, BOOK = "mine", "book"
SOURCE = view_link.named(
    "walk-source",
    {MINE: N_("A model of mine"), BOOK: N_("The example of the texts")},
    old=("source",),
)


@dataclass(frozen=True, slots=True)
class WalkView(ModelView):
    """What the page shows; its step and block are ``walk_state``'s."""

    source: str = view_link.linked(SOURCE)
