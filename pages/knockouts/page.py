"""Knock-outs: switch parts of a trained model off, and see at once what that costs."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.knockouts import board, controls, example, heads, outcome, pruning, state, which
from pages.knockouts.link import VIEW
from pages.ui import show, shown_run, view_link
from pages.ui.state import draw_anew
from tfm_core.runs.run import Run


def page() -> None:
    """Show the board of the current run's model, or of one that comes with the app."""
    show.header("knockouts")
    run = which.run_to_break()
    if run is not None:
        st.fragment(_look)(run)


def _look(run: Run) -> None:
    try:
        _draw(run)
    except ValueError as error:
        show.problem(error)


def _draw(run: Run) -> None:
    shown_run.unchosen_caption(run)
    off = state.off(run)
    asked = controls.controls(run, run.probe())
    question = asked.of(run)
    left, right = st.columns([13, 9], gap="medium")
    is_next = run.meta.recorded and not asked.is_all and heads.has_heads(run)
    with left:
        worth = heads.measured_heads(run, asked, st.empty()) if state.heads_asked(question) else {}
        board.board(run, off, worth)
        bar = st.empty()
        if worth or not is_next:
            heads.offer(run, asked, is_measured=bool(worth))
    with right:
        outcome.outcome(run, off, asked)
        example.answers(run, off, asked)
    view = view_link.choice(_("Look closer"), VIEW, is_labelled=False)
    if view == "heads":
        heads.table(run, off, asked, worth)
    elif view == "pruning":
        pruning.pruning(run, asked)
    else:
        example.attention(run, off, asked)
    shown_run.recorded_note(run, key="knockouts")
    if is_next and not worth:  # what stands above is seen meanwhile
        heads.measured_heads(run, asked, bar)
        state.ask_heads(question)
        draw_anew()


page()
