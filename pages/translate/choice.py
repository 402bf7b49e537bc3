"""The visitor's choices while writing: the step shown, forced tokens, the head."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.i18n import _
from pages.translate.link import (
    AT,
    FORCED,
    HEAD,
    LENGTH,
    MAX_STEPS,
    TEXT,
    WEIGHTS,
    Forced,
    Head,
)
from pages.ui.address import view_link
from tfm_core.config import Experiment
from tfm_core.runs.run import Run

_OF = "translate-of"


def receive(run: Run) -> tuple[str, ...]:
    """Read the link and drop what does not fit this model; return the problems.

    Text and forced tokens stay if the next model has the same vocabulary.
    """
    old_run, old_words = st.session_state.get(_OF, (run.id, words_of(run.experiment)))
    if old_run != run.id:
        gone: tuple[Any, ...] = (HEAD, AT, WEIGHTS)
        if old_words != words_of(run.experiment):
            gone = (*gone, FORCED, TEXT)
        for parameter in gone:
            if view_link.opened(parameter) is None:
                st.session_state.pop(parameter.key, None)
                view_link.forget([parameter])
    st.session_state[_OF] = (run.id, words_of(run.experiment))
    return tuple(filter(None, (view_link.receive(one) for one in (FORCED, AT, HEAD))))


def words_of(experiment: Experiment) -> str:
    """Return a key that differs between vocabularies."""
    task = experiment.task
    parts = (task.kind, task.name, *(getattr(task, one, "") for one in ("size", "unit", "data")))
    return " ".join(map(str, parts))


def forced() -> Forced:
    value: Forced = st.session_state[FORCED.key]
    return value


def at() -> int:
    """Return the step shown, from 1; 0 is the whole text."""
    return int(st.session_state[AT.key])


def head(n_layers: int, n_heads: int, first: Head) -> tuple[int, int]:
    """Return the chosen layer and head, from 0; head -1 is the mean.

    first: the default; None is the mean of the last layer.
    """
    value: Head = st.session_state[HEAD.key] or first
    if value is None or value[0] >= n_layers or value[1] >= n_heads:
        return n_layers - 1, -1
    return value


def say() -> None:
    for parameter in (FORCED, AT, HEAD):
        view_link.say(parameter, st.session_state[parameter.key])


def begin_anew() -> None:
    st.session_state[FORCED.key] = ()
    st.session_state[AT.key] = 0


def replay() -> None:
    st.session_state[AT.key] = 0


def force(place: int, id: int) -> None:
    now: Forced = st.session_state[FORCED.key]
    left = tuple(pair for pair in now if pair[0] != place)
    if (place, id) not in now and place < MAX_STEPS:
        left = (*left, (place, id))
    st.session_state[FORCED.key] = left
    st.session_state[AT.key] = 0


def undo() -> None:
    st.session_state[FORCED.key] = st.session_state[FORCED.key][:-1]
    st.session_state[AT.key] = 0


def show(step: int) -> None:
    st.session_state[AT.key] = step


def pick(head: Head) -> None:
    st.session_state[HEAD.key] = head


def length(longest: int) -> int:
    problem = view_link.receive(LENGTH)
    st.session_state[LENGTH.key] = min(st.session_state[LENGTH.key], longest)
    value = st.number_input(_("Tokens to write"), 1, longest, key=LENGTH.key, width=135)
    view_link.warn(problem)
    view_link.say(LENGTH, int(value))
    return int(value)
