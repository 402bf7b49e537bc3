"""Reading: what encoder-only models do, a label for a sentence and words for its gaps."""

from __future__ import annotations

from pages.encoders import blanks, sentiment
from pages.i18n import N_, _
from pages.ui import show, url_choice

VIEWS = {
    "sentiment": (N_("Sentiment"), sentiment.view),
    "blanks": (N_("Fill in the blank"), blanks.view),
}


def page() -> None:
    """Show one of the two; a link holds which."""
    show.header("encoders")
    picked = url_choice.choice(
        _("What is read"),
        {name: label for name, (label, _view) in VIEWS.items()},
        key="encoders-view",
        query="view",
        old="encoders-view",
        is_labelled=False,
    )
    VIEWS[picked][1]()


page()
