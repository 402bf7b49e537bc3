"""Any run with snapshots, to read a finding from: the visitor's newest, else a recorded one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.runs import shown_run
from tfm_core.config import Experiment
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
    return shown_run.choose_run(
        _("Model"),
        ready,
        key=key,
        describe=lambda run: _(run.meta.name) if run.meta.recorded else run.meta.name,
        about=_("Fitting runs, newest first."),
    )
