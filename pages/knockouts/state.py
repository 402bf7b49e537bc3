"""Session state: the parts that are off, and the undo history."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.knockouts.link import OFF, Codes
from pages.ui.address import view_link
from tfm_core.inspect.knockouts.parts import Part, first_to_go, parts_of
from tfm_core.runs.run import Run

_RUN, _PAST, _PROBLEM = "knockouts-run", "knockouts-past", "knockouts-problem"
_REQUESTED = "knockouts-requested"
_MAX_PAST = 50
Question = tuple[str, int, str, int]
"""What is measured: the run, its checkpoint, the replacement, the number of examples."""


def off(run: Run) -> tuple[Part, ...]:
    """Return the parts of a run that are off, the newest last; keep them in the link."""
    problem = view_link.receive(OFF)
    by_code = {part.code: part for part in parts_of(run.experiment)}
    requested: Codes | None = st.session_state[OFF.key]
    before = st.session_state.get(_RUN)
    is_other = before is not None and before != run.id
    fitting = tuple(code for code in requested or () if code in by_code)
    lacking = [code for code in requested or () if code not in by_code]
    if requested is None or (is_other and lacking and not fitting):
        fitting = (first_to_go(run.experiment).code,)
    elif lacking and not is_other:
        part = ", ".join([*lacking[:4], *(["…"] if len(lacking) > 4 else [])])
        problem = problem or _("This model has no {part}, so it is ignored.", part=part)
    if is_other:
        st.session_state[_PAST] = []
    if problem:
        st.session_state[_PROBLEM] = (run.id, fitting, problem)
    of_run, of_codes, problem = st.session_state.get(_PROBLEM, ("", (), ""))
    if (of_run, of_codes) != (run.id, fitting):  # shown until the next switch
        problem = ""
    st.session_state[_RUN] = run.id
    st.session_state[OFF.key] = fitting
    view_link.warn(problem)
    view_link.say(OFF, fitting)
    return tuple(by_code[code] for code in fitting)


def switch(*codes: str) -> None:
    now: Codes = st.session_state.get(OFF.key) or ()
    remaining = tuple(code for code in now if code not in codes)
    _change((*remaining, *(code for code in codes if code not in now)))


def clear() -> None:
    _change(())


def undo() -> None:
    past: list[Codes] = st.session_state.get(_PAST, [])
    if past:
        st.session_state[OFF.key] = past[-1]
        st.session_state[_PAST] = past[:-1]


def can_undo() -> bool:
    return bool(st.session_state.get(_PAST))


def enqueue(measurement: str, question: Question) -> None:
    """Queue a measurement of ``heads`` or ``pruning``, which takes seconds."""
    st.session_state.setdefault(_REQUESTED, set()).add((measurement, question))


def is_requested(measurement: str, question: Question) -> bool:
    return (measurement, question) in st.session_state.get(_REQUESTED, set())


def _change(codes: Codes) -> None:
    past: list[Codes] = st.session_state.get(_PAST, [])
    st.session_state[_PAST] = [*past, st.session_state.get(OFF.key) or ()][-_MAX_PAST:]
    st.session_state[OFF.key] = codes
