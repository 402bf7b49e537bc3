"""What a visitor chose while a text is written: the step that is shown, forced tokens, the head."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.i18n import _
from pages.translate.link import AT, FORCED, HEAD, LENGTH, MAX_STEPS, TEXT, Forced, Head
from pages.ui import view_link
from tfm_core.config import Experiment
from tfm_core.runs.run import Run

_OF = "translate-of"


def receive(run: Run) -> tuple[str, ...]:
    """Follow the link, and let go what another model was asked for; return what cannot be followed.

    A text and its forced tokens stay where the next model has the same words.
    """
    old_run, old_words = st.session_state.get(_OF, (run.id, words_of(run.experiment)))
    if old_run != run.id:
        gone: tuple[Any, ...] = (HEAD, AT)
        if old_words != words_of(run.experiment):
            gone = (*gone, FORCED, TEXT)
        for parameter in gone:
            if view_link.opened(parameter) is None:
                st.session_state.pop(parameter.key, None)
                view_link.forget([parameter])
    st.session_state[_OF] = (run.id, words_of(run.experiment))
    return tuple(filter(None, (view_link.receive(one) for one in (FORCED, AT, HEAD))))


def words_of(experiment: Experiment) -> str:
    """Return what tells the words of one task from those of another."""
    task = experiment.task
    parts = (task.kind, task.name, *(getattr(task, one, "") for one in ("size", "unit", "data")))
    return " ".join(map(str, parts))


def forced() -> Forced:
    """Return the tokens that are put in, in the order in which they were."""
    found: Forced = st.session_state[FORCED.key]
    return found


def at() -> int:
    """Return the step that is shown, from 1; 0 is the whole text."""
    return int(st.session_state[AT.key])


def head(n_layers: int, n_heads: int, first: Head) -> tuple[int, int]:
    """Return the layer and the head whose attention is shown, from 0; -1 is the mean of all.

    first: what is shown where nothing was chosen; None is the mean of the last layer.
    """
    found: Head = st.session_state[HEAD.key] or first
    if found is None or found[0] >= n_layers or found[1] >= n_heads:
        return n_layers - 1, -1
    return found


def say() -> None:
    """Put what is chosen into the link."""
    for parameter in (FORCED, AT, HEAD):
        view_link.say(parameter, st.session_state[parameter.key])


def begin_anew() -> None:
    """Let go of forced tokens and of the step: something else is read."""
    st.session_state[FORCED.key] = ()
    st.session_state[AT.key] = 0


def replay() -> None:
    """Show the whole text: it is written in another way."""
    st.session_state[AT.key] = 0


def force(place: int, id: int) -> None:
    """Put a token in, or let it go where it was put in already."""
    now: Forced = st.session_state[FORCED.key]
    left = tuple(pair for pair in now if pair[0] != place)
    if (place, id) not in now and place < MAX_STEPS:
        left = (*left, (place, id))
    st.session_state[FORCED.key] = left
    st.session_state[AT.key] = 0


def undo() -> None:
    """Let the token go that was put in last."""
    st.session_state[FORCED.key] = st.session_state[FORCED.key][:-1]
    st.session_state[AT.key] = 0


def free() -> None:
    """Let all tokens go that were put in."""
    st.session_state[FORCED.key] = ()
    st.session_state[AT.key] = 0


def show(step: int) -> None:
    """Stop at a step."""
    st.session_state[AT.key] = step


def pick(head: Head) -> None:
    """Look at the attention of a layer, or of one head."""
    st.session_state[HEAD.key] = head


def length(longest: int) -> int:
    """Ask how many tokens are written at most; at most ``longest``."""
    problem = view_link.receive(LENGTH)
    st.session_state[LENGTH.key] = min(st.session_state[LENGTH.key], longest)
    found = st.number_input(_("Tokens to write"), 1, longest, key=LENGTH.key, width=135)
    view_link.warn(problem)
    view_link.say(LENGTH, int(found))
    return int(found)
