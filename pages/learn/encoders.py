"""Reading: what encoder-only models do, a label for a sentence and words for its gaps."""

from __future__ import annotations

from pages.ui import encoders_blanks, encoders_sentiment, linked, show
from pages.ui.words import _

VIEWS = {
    "sentiment": (_("Sentiment"), encoders_sentiment.view),
    "blanks": (_("Fill in the blank"), encoders_blanks.view),
}


def page() -> None:
    """Show one of the two; a link holds which."""
    show.header("encoders")
    picked = linked.choice(
        _("What is read"),
        {name: label for name, (label, _view) in VIEWS.items()},
        key="encoders-view",
        query="view",
        old="encoders-view",
        is_labelled=False,
    )
    VIEWS[picked][1]()


page()
