"""Knock-outs: switch parts of a trained model off, and see at once what that costs."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.knockouts import board, causes, example, heads, outcome, pattern, state
from pages.knockouts.link import VIEW
from pages.ui import show
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.runs import runs_access, shown_run
from pages.ui.settings import glosses
from pages.ui.state import current_run_id, draw_anew, set_current_run
from pages.ui.typed import escape
from tfm_core.inspect.attention.trained import no_checkpoint
from tfm_core.runs.run import Run

FIRST_RECORDED = "recorded-korean"
TICK = 2.0
"""Seconds between refreshes while a run has no weights yet."""


def page() -> None:
    """Show the board of the current run's model, or of one that comes with the app."""
    show.header("knockouts")
    run = run_to_show()
    if run is not None:
        st.fragment(_view)(run)


def _view(run: Run) -> None:
    try:
        _draw(run)
    except ValueError as error:
        show.problem(error)


def _draw(run: Run) -> None:
    if not run.meta.recorded:  # else the measurement names it
        shown_run.unchosen_caption(run)
    off = state.off(run)
    measurement = outcome.controls(run, run.probe())
    question = measurement.of(run)
    left, right = st.columns([13, 9], gap="medium")
    is_next = run.meta.recorded and not measurement.is_all and heads.has_heads(run)
    with left:
        is_requested = state.is_requested("heads", question)
        importances = heads.measured_heads(run, measurement, st.empty()) if is_requested else {}
        board.board(run, off, importances)
        bar = st.empty()
        if measurement.n and (importances or not is_next):
            heads.offer(run, measurement, is_measured=bool(importances))
    with right, st.container(key="knockouts-outcome"):
        outcome.scores(run, off, measurement)
        example.answers(run, off, measurement)
        glosses.switch(run.experiment, key="knockouts-glosses")
    view = view_link.choice(_("Look closer"), VIEW, is_labelled=False)
    if view == "attention":
        example.attention(run, off, measurement)
    elif view == "causes":
        causes.part(run, measurement.example)
    elif not heads.has_heads(run):
        st.info(_("A recurrent network has no heads."))
    elif view == "pattern":
        pattern.part(run, measurement, off)
    elif not measurement.n:
        st.info(paragraph("knockouts/one-example"))
    elif view == "heads":
        heads.table(run, off, measurement, importances)
    else:
        heads.pruning(run, measurement)
    if is_next and not importances:  # what is above is visible meanwhile
        heads.measured_heads(run, measurement, bar)
        state.enqueue("heads", question)
        draw_anew()


def run_to_show() -> Run | None:
    """Return the run to show; without one, show why and offer another, and return None."""
    run_id = current_run_id()
    if run_id is None:
        able = [run for run in visitors.listed() if not run.problem and run.has_checkpoint]
        run = shown_run.first_to_show(able, FIRST_RECORDED)
        if run is None:
            show.empty(_("No trained model to take apart yet."), _("Train a model"), "home")
        return run
    run = runs_access.store().get(run_id)
    if run.problem:
        show.problem(run.problem)
    elif run.has_checkpoint:
        return run
    else:
        st.fragment(_wait, run_every=TICK if run.status.is_active else None)(run)
    _offer_recorded()
    return None


def _wait(run: Run) -> None:
    if run.has_checkpoint:
        draw_anew()
    if run.status.is_active:
        st.info(_(no_checkpoint(run)), icon=":material/hourglass_empty:")
    else:
        show.problem(no_checkpoint(run))


def _offer_recorded() -> None:
    able = {run.id: run for run in visitors.listed() if run.meta.recorded and run.has_checkpoint}
    run = able.get(FIRST_RECORDED)
    if run is not None:
        st.button(
            _("Take “{name}” apart", name=escape(run.meta.name)),
            icon=":material/inventory_2:",
            key="knockouts-recorded",
            on_click=set_current_run,
            args=(run.id,),
        )


page()
