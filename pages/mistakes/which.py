"""Which run is judged: the current one, else the visitor's newest, else a recorded one."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import runs_access, show, shown_run, state, visitors
from tfm_core.runs.run import Run

FIRST = "recorded-digits"
_FITTING = {
    "text": "recorded-korean",
    "own": "recorded-korean",
    "caption": "recorded-captions",
    "corpus": "recorded-grammar",
}
"""The recorded run of each kind of task; of pictures it is the first."""


def run() -> Run | None:
    """Return the run to judge; None only where there is none at all."""
    run_id = state.current_run_id()
    if run_id is not None:
        return runs_access.store().get(run_id)
    able = [run for run in visitors.listed() if not run.problem and run.has_checkpoint]
    return shown_run.first_to_show(able, FIRST)


def unfit(run: Run, why: str | BaseException) -> None:
    """Say why a run cannot be judged, and show a recorded one of its kind at one press."""
    show.problem(why)
    kind = "" if run.problem else run.experiment.task.kind
    wanted = _FITTING.get(kind, FIRST)
    fitting = {one.id: one for one in visitors.listed() if one.meta.recorded}
    other = fitting.get(wanted)
    if other is None or other.id == run.id:
        return
    st.button(
        _("Show “{name}”", name=other.meta.name),
        icon=":material/inventory_2:",
        type="primary",
        key="mistakes-recorded",
        on_click=state.set_current_run,
        args=(other.id,),
    )
