"""The leaderboard: every trial, best first, and links from the chosen one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from pages.i18n import N_, _
from pages.ui import state
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, runs_access
from pages.ui.typed import escape
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sweeps import space
from tfm_core.sweeps.plan import Plan
from tfm_core.sweeps.study import Trial

_HEIGHT = 300
STATES = {
    "running": N_("trains"),
    "complete": N_("complete"),
    "diverged": N_("diverged"),
    "failed": N_("no result"),
}


def table(plan: Plan, trials: Sequence[Trial]) -> None:
    if not trials:
        st.info(_("The first run is starting."), icon=":material/hourglass_empty:")
        return
    rows = ranked(plan, trials)
    chosen = st.dataframe(
        pd.DataFrame([_row(plan, trial) for trial in rows]),
        hide_index=True,
        height=_HEIGHT,
        key="sweeps-board",
        on_select="rerun",
        selection_mode="single-row",
    )
    picked = list(chosen["selection"]["rows"]) if chosen else []
    trial = rows[picked[0]] if picked and picked[0] < len(rows) else rows[0]
    _links(plan, trial, is_best=not picked)


def ranked(plan: Plan, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials, best first, then running, diverged and failed ones."""
    sign = -1 if plan.looks_for.is_maximized else 1

    def place(trial: Trial) -> tuple[int, float]:
        if trial.state == "complete" and trial.value is not None:
            return 0, sign * trial.value
        return ("running", "diverged", "failed").index(trial.state) + 1, trial.number

    return sorted(trials, key=place)


def _row(plan: Plan, trial: Trial) -> dict[str, object]:
    figure = "–" if trial.value is None else plan.looks_for.said(trial.value)
    settings = {
        _(space.label_of(plan.base, path)): _(space.shown(value))
        for path, value in trial.values.items()
    }
    run = _run(trial)
    done = ""
    if run is not None and trial.state == "running":
        status = run.status
        done = f" {100 * status.progress:.0f}%" if status.is_alive else f", {_('waits')}"
    return {
        _("Trial"): trial.number,
        _(plan.looks_for.label): figure,
        **settings,
        _("State"): _(STATES[trial.state]) + done,
        _("Why"): _(trial.why),
    }


def _links(plan: Plan, trial: Trial, *, is_best: bool) -> None:
    words = _("Trial {n}", n=trial.number)
    if is_best and trial.state == "complete":
        words = _("Best: trial {n}", n=trial.number)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"**{words}** · {escape(space.words(plan.base, trial.values))}",
            width="stretch",
        )
        run = _run(trial)
        if run is not None:
            st.page_link(
                page_table.path_of("train"),
                label=_("Watch run"),
                icon=":material/show_chart:",
                query_params={"run": run.id, **run_actions.way_back()},
            )
            if st.button(
                _("Use its settings"),
                icon=":material/tune:",
                key="sweeps-take",
                help=_("Opens Train with these settings."),
            ):
                state.set_draft(run.experiment.model_dump())
                state.set_current_run(None)
                st.switch_page(page_table.path_of("train"))


def _run(trial: Trial) -> Run | None:
    if trial.run_id is None:
        return None
    try:
        run = runs_access.store().get(trial.run_id)
    except RunNotFound:
        return None
    return None if run.problem else run
