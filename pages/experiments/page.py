"""Experiments that teach: one thing changed, both trained, and what it showed in a sentence."""

from __future__ import annotations

import streamlit as st

from pages.experiments import gallery, opened
from pages.ui import comparison, show, visitors
from tfm_core.inspect.experiments.result import RunIndex


def page() -> None:
    """Show the experiments, and one of them opened, which moves while its runs train."""
    show.header("experiments")
    shelf = RunIndex(visitors.at_hand())
    left, right = st.columns([1, 3], gap="medium")
    with left:
        chosen = gallery.chosen(shelf)
    found = shelf.of(chosen)
    is_live = comparison.is_live(found.runs)
    with right:
        tick = comparison.TICK if is_live else None
        st.fragment(opened.draw, run_every=tick)(chosen, found, is_live)


page()
