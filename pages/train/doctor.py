"""The training doctor beside a run's curves: symptoms, and a button that starts the fix."""

from __future__ import annotations

import streamlit as st

from pages.app import state
from pages.app.lessons import open_lesson
from pages.app.runs import comparison, run_actions, run_words, runs_access
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.inspect.differences import change_text, differences
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.studies.study import Arm, changed
from tfm_core.studies.symptoms import Symptom

_STARTED = "doctor-cured_id"


def panel(run: Run) -> None:
    symptoms = []
    for symptom in run_words.symptoms(run) or ():
        compared = [
            differences([run.experiment, changed(run.experiment, cure.changes)])
            for cure in symptom.cures
        ]
        # a fix would give away a setting that the open lesson asks for
        if not any(open_lesson.asks_for(row.field) for rows in compared for row in rows):
            symptoms.append(symptom)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="doctor"):
        if not symptoms:
            return
        first, *others = symptoms
        words = escape(_(first.sentence))
        if run.status.state == "failed":  # the reason is shown already
            words = _("What helps:")
        st.caption(f":orange[:material/stethoscope: {words}]", width="stretch")
        if first.cures:
            _cure_button(run, first.cures[0], key="doctor-cure", is_first=True)
        _more(run, first, others)


def _more(run: Run, first: Symptom, others: list[Symptom]) -> None:
    if not others and len(first.cures) < 2:
        return
    n = len(others)
    label = ngettext("{n} more symptom", "{n} more symptoms", n, n=n)
    with st.popover(label if n else _("Show more fixes"), key=state.menu_key("doctor-more")):
        for number, symptom in enumerate((first, *others)):
            if number:
                st.caption(f":orange[:material/stethoscope: {escape(_(symptom.sentence))}]")
            for place, cure in enumerate(symptom.cures if number else symptom.cures[1:]):
                _cure_button(run, cure, key=f"doctor-{number}-{place}")


def _cure_button(run: Run, cure: Arm, *, key: str, is_first: bool = False) -> None:
    words = _("Starts a new run.")
    if run.status.is_active:
        words = _("Stops this run and starts a new one.")
    comparison.cure_button(run, cure, key=key, on_click=_start_cure, is_first=is_first, words=words)


def _start_cure(run: Run, cure: Arm) -> None:
    """Start the fix in the callback: a redraw could be overtaken by a poll."""
    cured = run_actions.cure(run, cure)
    st.session_state[_STARTED] = None if cured is None else cured.id


def go_on() -> None:
    """Open the run that a press started, or redraw with the reason why it did not start."""
    if _STARTED in st.session_state:
        cured_id = st.session_state.pop(_STARTED)
        if cured_id is not None:
            state.set_current_run(cured_id)
        st.rerun()


def origin(run: Run) -> None:
    sick_id = run.meta.cure_of
    if sick_id is None:
        return
    try:
        sick = runs_access.store().get(sick_id)
        what = escape(_(change_text(sick.experiment, run.experiment)))
        name = escape(sick.meta.name)
    except (RunNotFound, ValueError):
        st.caption(f":material/healing: {_('Fix of a deleted run.')}")
        return
    words = _("Fix of “{name}” from the start: {what}.", name=name, what=what)
    if run.meta.cured_from:
        step = f"{run.meta.cured_from:,}"
        words = _("Fix of “{name}” from step {step}: {what}.", name=name, step=step, what=what)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="doctor-origin"
    ):
        st.caption(f":material/healing: {words}", width="content")
        if st.button(
            _("Compare with the original"),
            icon=":material/compare_arrows:",
            type="tertiary",
            key="doctor-compare",
        ):
            comparison.open_comparison([sick.id, run.id])
