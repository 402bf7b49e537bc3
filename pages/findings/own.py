"""Any run with snapshots, to read a finding from: the visitor's newest, else a recorded one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.runs import run_words
from pages.i18n import _
from tfm_core.choices.config import Experiment
from tfm_core.runs.run import Run

_MAX = 20
_RECORDED = "recorded-korean"


def chosen_run(
    fits: Callable[[Experiment], bool], *, key: str, first: Run | None = None
) -> Run | None:
    """Draw the choice of a run that fits and has snapshots; None where there is none.

    first: the one that is shown until another is chosen.
    """
    current = state.current_run_id()
    ready = [
        run
        for run in (visitors.at_hand() if first is None else [first, *visitors.at_hand()])
        if run.problem is None and fits(run.experiment) and len(run.snapshot_steps()) > 1
    ]
    ready.sort(key=lambda run: (run is not first, run.meta.recorded, run.id != _RECORDED))
    ready = [run for n, run in enumerate(ready) if n < _MAX or run.id == current]
    if not ready:
        st.info(_("No run fits yet."), icon=":material/hourglass_empty:")
        return None
    by_id = {run.id: run for run in ready}
    if current in by_id or st.session_state.get(key) not in by_id:
        st.session_state[key] = current if current in by_id else ready[0].id
    picked = st.selectbox(
        _("Model"),
        list(by_id),
        format_func=lambda run_id: run_words.name(by_id[run_id]),
        key=key,
        help=_("Fitting runs, newest first."),
        on_change=lambda: state.set_current_run(st.session_state[key]),
    )
    if current is None:
        state.show_unasked(picked)
    return by_id[picked]
