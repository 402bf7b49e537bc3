"""Before the Transformer: attention between recurrent networks, and what changed in 2017."""

from __future__ import annotations

import streamlit as st

from pages.ui import before_contest, before_history, before_times, show
from pages.ui.words import _

VIEWS = {
    "contest": (_("Side by side"), before_contest.view),
    "length": (_("Time against length"), before_times.view),
    "history": (_("2014 to 2017"), before_history.view),
}


def page() -> None:
    """Show one side of it at a time; a link holds which."""
    show.header("before")
    picked = st.segmented_control(
        _("View"),
        list(VIEWS),
        format_func=lambda name: VIEWS[name][0],
        default="contest",
        required=True,
        key="before-view",
        bind="query-params",
        wrap=True,
        label_visibility="collapsed",
    )
    VIEWS[picked if picked in VIEWS else "contest"][1]()


page()
