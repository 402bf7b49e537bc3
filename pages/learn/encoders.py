"""Reading: what encoder-only models do, a label for a sentence and words for its gaps."""

from __future__ import annotations

import streamlit as st

from pages.ui import encoders_blanks, encoders_sentiment, show
from pages.ui.words import _

VIEWS = {
    "sentiment": (_("Sentiment"), encoders_sentiment.view),
    "blanks": (_("Fill in the blank"), encoders_blanks.view),
}


def page() -> None:
    """Show one of the two; a link holds which."""
    show.header("encoders")
    picked = st.segmented_control(
        _("What is read"),
        list(VIEWS),
        format_func=lambda name: VIEWS[name][0],
        default="sentiment",
        required=True,
        key="encoders-view",
        bind="query-params",
        wrap=True,
        label_visibility="collapsed",
    )
    VIEWS[picked if picked in VIEWS else "sentiment"][1]()


page()
