"""What is switched off, and what was before: this module owns the keys that remember it."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.knockouts.link import OFF, Codes
from pages.ui import view_link
from tfm_core.inspect.knockouts.parts import KnockedPart, first_to_go, parts_of
from tfm_core.runs.run import Run

_RUN, _PAST, _PROBLEM = "knockouts-run", "knockouts-past", "knockouts-problem"
_MEASURED, _PRUNED = "knockouts-measured", "knockouts-pruned"
_MAX_PAST = 50
Question = tuple[str, int, str, int]
"""Of what something is measured: the run, its checkpoint, how, on how many examples."""


def off(run: Run) -> tuple[KnockedPart, ...]:
    """Return what is switched off in a run's model, the newest last, and say so in the link."""
    problem = view_link.receive(OFF)
    known = {part.code: part for part in parts_of(run.experiment)}
    asked: Codes | None = st.session_state[OFF.key]
    before = st.session_state.get(_RUN)
    is_other = before is not None and before != run.id
    fitting = tuple(code for code in asked or () if code in known)
    lacking = [code for code in asked or () if code not in known]
    if asked is None or (is_other and lacking and not fitting):
        fitting = (first_to_go(run.experiment).code,)
    elif lacking and not is_other:
        words = _("The model of this run has no {part}, so it is ignored.")
        problem = problem or words.format(part=", ".join(lacking[:4]))
    if is_other:
        st.session_state[_PAST] = []
    if problem:
        st.session_state[_PROBLEM] = (run.id, fitting, problem)
    of_run, of_codes, problem = st.session_state.get(_PROBLEM, ("", (), ""))
    if (of_run, of_codes) != (run.id, fitting):  # said until something else is switched
        problem = ""
    st.session_state[_RUN] = run.id
    st.session_state[OFF.key] = fitting
    view_link.warn(problem)
    view_link.say(OFF, fitting)
    return tuple(known[code] for code in fitting)


def switch(*codes: str) -> None:
    """Switch parts off that are on, and on that are off."""
    now: Codes = st.session_state.get(OFF.key) or ()
    kept = tuple(code for code in now if code not in codes)
    _change((*kept, *(code for code in codes if code not in now)))


def clear() -> None:
    """Switch everything on again."""
    _change(())


def undo() -> None:
    """Take the last change back, if there is one."""
    past: list[Codes] = st.session_state.get(_PAST, [])
    if past:
        st.session_state[OFF.key] = past[-1]
        st.session_state[_PAST] = past[:-1]


def can_undo() -> bool:
    """Return whether there is a change to take back."""
    return bool(st.session_state.get(_PAST))


def ask_heads(question: Question) -> None:
    """Remember that all heads are to be measured."""
    st.session_state.setdefault(_MEASURED, set()).add(question)


def heads_asked(question: Question) -> bool:
    """Return whether all heads are measured, or being so."""
    return question in st.session_state.get(_MEASURED, set())


def ask_pruning(question: Question) -> None:
    """Remember that heads are to be taken away one after the other."""
    st.session_state.setdefault(_PRUNED, set()).add(question)


def pruning_asked(question: Question) -> bool:
    """Return whether the curve of taking heads away is asked for."""
    return question in st.session_state.get(_PRUNED, set())


def _change(codes: Codes) -> None:
    past: list[Codes] = st.session_state.get(_PAST, [])
    st.session_state[_PAST] = [*past, st.session_state.get(OFF.key) or ()][-_MAX_PAST:]
    st.session_state[OFF.key] = codes
