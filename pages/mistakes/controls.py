"""Controls: the step of the weights, and the chosen cell of the matrix."""

from __future__ import annotations

import streamlit as st

from pages.mistakes.link import CELL, STEP, Cell
from pages.ui.address import view_link
from tfm_core.runs.run import Run

_RUN = "mistakes-run"


def begin(run: Run) -> None:
    """Forget the choices for another run, unless a newly opened link has them."""
    before = st.session_state.get(_RUN)
    st.session_state[_RUN] = run.id
    if before in (None, run.id):
        return
    if view_link.opened(STEP) is None:
        st.session_state.pop(STEP.key, None)
        view_link.say(STEP, STEP.first)
    if view_link.opened(CELL) is None:
        st.session_state.pop(CELL.key, None)
        view_link.say(CELL, CELL.first)


def cell() -> Cell | None:
    view_link.warn(view_link.receive(CELL))
    chosen: Cell | None = st.session_state.get(CELL.key)
    view_link.say(CELL, chosen)
    return chosen


def choose_cell(cell: Cell | None) -> None:
    """Choose a cell, or none; choosing it again clears it."""
    is_same = st.session_state.get(CELL.key) == cell
    st.session_state[CELL.key] = None if is_same else cell
    view_link.say(CELL, st.session_state[CELL.key])
