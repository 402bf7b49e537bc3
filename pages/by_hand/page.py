"""Attention by hand: every number from a few short vectors to the output, and back."""

from __future__ import annotations

from pages.by_hand import stages, words
from pages.by_hand.link import STAGE, elsewhere
from pages.i18n import _, content
from pages.ui import show
from pages.ui.address import view_link

STAGES = {
    "one-hot": stages.one_hot,
    "projections": stages.projections,
    "heads": stages.heads,
    "forms": stages.forms,
}


def page() -> None:
    """Show one stage; the link holds which, the words and their vectors."""
    show.header("by-hand")
    stage = view_link.choice(_("Stage"), STAGE, is_labelled=False)
    show.prose(content(f"by_hand_{stage.replace('-', '_')}"))
    view_link.forget(elsewhere(stage))
    try:
        given = words.given(stage)
        STAGES[stage](given)
    except ValueError as error:
        show.problem(error)


page()
