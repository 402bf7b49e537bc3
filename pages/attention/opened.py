"""Which run the page opens on, and why: it is never empty while there is a run to look into."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import recorded, runs_access, state, visitors
from pages.ui.typed import escape
from tfm_core.runs.run import Run

FIRST_RECORDED = "recorded-korean"
_OPENED = "attention-opened"


def run_to_open() -> Run | None:
    """Return the current run, else the visitor's newest with snapshots, else a recorded one.

    None only where nothing at all can be looked into.
    """
    run_id = state.current_run_id()
    if run_id is not None:
        return runs_access.store().get(run_id)
    seen = [run for run in visitors.listed() if not run.problem and run.snapshot_steps()]
    kept = [run for run in seen if run.meta.recorded]
    first = [run for run in kept if run.id == FIRST_RECORDED]
    run = next(iter([run for run in seen if not run.meta.recorded] + first + kept), None)
    st.session_state[_OPENED] = None if run is None else run.id
    return run


def say(run: Run) -> None:
    """Say in a line which run this is, and why, where the page chose it."""
    if st.session_state.get(_OPENED) != run.id:
        return
    words = _("**{name}**: no run was chosen, so this is the newest one with snapshots.")
    if run.meta.recorded:
        words = _("**{name}**: you have trained nothing yet, so this is a recorded run.")
    st.caption(f"{recorded.badge(run)} {words.format(name=escape(run.meta.name))}".strip())
