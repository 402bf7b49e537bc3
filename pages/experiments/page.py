"""Experiments that teach: change one thing, train both, compare."""

from __future__ import annotations

import streamlit as st

from pages.experiments import opened
from pages.ui import show
from pages.ui.accounts import visitors
from pages.ui.runs import comparison
from tfm_core.inspect.experiments.result import RunIndex


def page() -> None:
    show.header("experiments")
    chosen = opened.choose()
    trained = RunIndex(visitors.at_hand()).of(chosen)
    is_live = comparison.is_live(trained.runs)
    tick = comparison.TICK if is_live else None
    st.fragment(opened.draw, run_every=tick)(chosen, trained, is_live)


page()
