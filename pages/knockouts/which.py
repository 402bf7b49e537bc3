"""Which run's model is taken apart: the current one, else the newest with weights, else ours."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import fitting_run, runs_access, show, state, visitors
from pages.ui.typed import escape
from tfm_core.inspect.attention.trained import no_checkpoint
from tfm_core.runs.run import Run

FIRST_RECORDED = "recorded-korean"
TICK = 2.0
"""Seconds between two looks at a run that has saved no weights yet."""


def run_to_break() -> Run | None:
    """Return the run to show; None, after saying why and what would help, where it cannot be."""
    run_id = state.current_run_id()
    if run_id is None:
        return _first()
    run = runs_access.store().get(run_id)
    if run.problem:
        show.problem(run.problem)
    elif run.has_checkpoint:
        return run
    else:
        st.fragment(_wait, run_every=TICK if run.status.is_active else None)(run)
    _offer_recorded()
    return None


def _first() -> Run | None:
    able = [run for run in visitors.listed() if not run.problem and run.has_checkpoint]
    run = fitting_run.first_to_show(able, FIRST_RECORDED)
    if run is None:
        show.empty(_("No trained model to take apart yet."), _("Train a model"), "home")
    return run


def _wait(run: Run) -> None:
    if run.has_checkpoint:
        state.draw_anew()
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
            on_click=state.set_current_run,
            args=(run.id,),
        )
