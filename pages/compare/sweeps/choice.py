"""Which sweep is shown: an existing or a new one."""

from __future__ import annotations

import streamlit as st

from pages.app.address import parameters, view_link
from pages.app.typed import escape
from pages.compare.sweeps import actions
from pages.i18n import _
from tfm_core.sweeps.plan import SweepDamaged
from tfm_core.sweeps.store import Sweep, SweepNotFound

_PICK = "sweeps-pick"
NEW = ""
SWEEP = parameters.Text("sweep", first="", key="sweeps-shown", most=64)
"""The id of a sweep; empty for a new one."""


def shown() -> Sweep | None:
    """Draw the choice; return the sweep to show, or None to create one."""
    problem = view_link.receive(SWEEP)
    sweep_id = str(st.session_state[SWEEP.key])
    listed = actions.listed()
    names = {sweep.id: _name(sweep) for sweep in listed}
    if sweep_id and sweep_id not in names:
        try:
            names[sweep_id] = _name(actions.sweep_store().get(sweep_id))
        except SweepNotFound as error:
            problem = problem or _(error)
            sweep_id = NEW
    view_link.warn(problem)
    if names:
        st.session_state[_PICK] = sweep_id
        st.selectbox(
            _("Sweep"),
            [NEW, *names],
            format_func=lambda name: names.get(name, _("New sweep")),
            key=_PICK,
            label_visibility="collapsed",
            on_change=lambda: open_sweep(str(st.session_state[_PICK])),
        )
    st.session_state[SWEEP.key] = sweep_id
    view_link.say(SWEEP, sweep_id)
    return actions.sweep_store().get(sweep_id) if sweep_id else None


def open_sweep(sweep_id: str) -> None:
    """Show a sweep from the next rerun on; an empty id creates one."""
    st.session_state[SWEEP.key] = sweep_id
    view_link.say(SWEEP, sweep_id)


def undo() -> None:
    gone = actions.deleted()[:1]
    for sweep in gone:
        name = escape(_title(sweep))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(_("Deleted *{name}*.", name=name), width="content")
            if st.button(
                _("Undo: {name}", name=name),
                key=f"sweeps-undo-{sweep.id}",
                icon=":material/undo:",
                type="tertiary",
            ) and actions.undelete(sweep):
                open_sweep(sweep.id)
                st.rerun()


def deletion(sweep: Sweep) -> None:
    with st.popover(_("Delete sweep …"), icon=":material/delete:"):
        st.caption(_("Its runs stay. You can undo for a day."))
        if st.button(_("Delete sweep"), key="sweeps-delete") and actions.delete(sweep):
            open_sweep(NEW)
            st.rerun()


def _title(sweep: Sweep) -> str:
    try:
        return sweep.plan().name
    except SweepDamaged:
        return sweep.id[:20]


def _name(sweep: Sweep) -> str:
    try:
        plan = sweep.plan()
    except SweepDamaged:
        return _("{id} (damaged)", id=sweep.id[:20])
    return f"{plan.name} · {_(plan.base.task.facts.label)} · {_(actions.STATES[plan.state])}"
