"""Questions of the pages: predict, check, and read why; the session keeps the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.app import state
from pages.app.navigation import ticks
from pages.i18n import _
from tfm_core.inspect.questions import Question

_ANSWERS = "question-answers"
_GIVEN, _REVEALED = "question-given", "question-revealed"
MAX_RADIO = 6
"""Options of a question that stand side by side; more are a list that opens."""


def check(asked: Mapping[str, Question | None], *, of: str = "", label: str = "") -> None:
    """Ask questions, by slot, behind a line that opens; None is one that this subject has not."""
    there = {slot: question for slot, question in asked.items() if question is not None}
    if there:
        with st.expander(label or _("Check yourself"), icon=":material/quiz:"):
            for slot, question in there.items():
                ask(question, slot, of=of)


def ask(asked: Question, slot: str, *, of: str = "") -> bool:
    """Ask a question; return whether an answer was given or shown.

    slot: names the question on its page. of: what it is asked of; of something else it is asked
    anew.
    """
    return _asked(asked, slot, _name(slot, of))


def _asked(asked: Question, slot: str, name: str, *, is_guess: bool = False) -> bool:
    with st.container(border=True):
        st.markdown(_("**Predict:** {question}", question=_(asked.text)))
        with st.form(f"question-form-{hash(name)}", border=False, enter_to_submit=True):
            key = f"question-input-{hash(name)}"
            given = _answer_input(asked, key)
            with st.container(horizontal=True):
                pressed = st.form_submit_button(
                    _("Check"),
                    type="primary",
                    on_click=_check,
                    args=(asked, slot, name, key, is_guess),
                )
                st.form_submit_button(
                    _("Show the answer"), type="tertiary", on_click=_reveal, args=(slot, name)
                )
        if pressed and given is None:
            st.caption(_("Answer first."))
        _verdict(asked, name)
        _score()
    return _is_guessed(name)


def guess(asked: Question, slot: str, *, of: str = "") -> bool:
    """Ask for a guess before a result; return whether it was made or declined."""
    name = _name(slot, of)
    if not _is_guessed(name):
        return _asked(asked, slot, name, is_guess=True)
    last = _last().get(name)
    if last is not None:
        is_right = asked.is_right(last)
        given = _(str(last)).rstrip(".")
        message = _("Your guess: **{given}**.", given=given)
        why = "" if is_right else _(asked.why_not(last))
        icon = ":green[:material/check_circle:]" if is_right else ":material/cancel:"
        st.markdown(f"{icon} {message} {why}".rstrip())
    return True


def is_guessed(slot: str, *, of: str = "") -> bool:
    """Return whether an answer to a question was given or shown."""
    return _is_guessed(_name(slot, of))


def is_revealed(slot: str, *, of: str = "") -> bool:
    """Return whether a question was answered right or its answer shown."""
    return _name(slot, of) in _revealed()


def _name(slot: str, of: str) -> str:
    return f"{state.page()} {slot} {of}"


def _check(asked: Question, slot: str, name: str, key: str, is_guess: bool) -> None:
    """Record an answer. Only the first one counts; a right one reveals.

    is_guess: the page shows what is true behind any answer.
    """
    given = st.session_state.get(key)
    if given is None:
        return
    is_right = asked.is_right(given)
    _answers().setdefault(name, is_right)
    _last()[name] = given
    if is_right:
        _revealed().add(name)
    if is_right or is_guess:
        ticks.mark(slot)


def _reveal(slot: str, name: str) -> None:
    """Reveal the answer; a question that was not answered counts as wrong."""
    _answers().setdefault(name, False)
    _last().pop(name, None)
    _revealed().add(name)
    ticks.mark(slot)


def _is_guessed(name: str) -> bool:
    return name in _answers()


def _kept(key: str, empty: Callable[[], Any]) -> Any:
    return st.session_state.setdefault(key, empty())


def _answers() -> dict[str, bool]:
    """Return whether the first answer was right, by question."""
    given: dict[str, bool] = _kept(_ANSWERS, dict)
    return given


def _last() -> dict[str, str | float]:
    """Return the last answers: none of a question whose solution was shown."""
    given: dict[str, str | float] = _kept(_GIVEN, dict)
    return given


def _revealed() -> set[str]:
    names: set[str] = _kept(_REVEALED, set)
    return names


def _verdict(asked: Question, name: str) -> None:
    """Show whether the last answer is right, and why."""
    last = _last().get(name)
    if last is None:
        if name in _revealed():
            st.info(f"**{_(asked.answer)}**. {_(asked.because)}")
    elif asked.is_right(last):
        st.success(_("Right. {because}", because=_(asked.because)))
    else:
        given = _(last) if isinstance(last, str) else f"{last:g}"
        why = _(asked.why_not(last))
        st.warning(_("Not {given}. {why} Try again.", given=given, why=why))


def _answer_input(asked: Question, key: str) -> str | float | None:
    label = _("Your prediction")
    shared: dict[str, Any] = {"key": key, "label_visibility": "collapsed"}
    options: dict[str, Any] = {"options": asked.options, "format_func": _, "index": None}
    given: str | float | None
    if not asked.options:
        hint = _("a whole number")
        given = st.number_input(label, value=None, step=1, format="%d", placeholder=hint, **shared)
    elif len(asked.options) > MAX_RADIO:
        given = st.selectbox(label, placeholder=_("Choose"), **options, **shared)
    else:
        given = st.radio(label, **options, **shared)
    return given


def _score() -> None:
    given = _answers()
    if given:
        right, count = sum(given.values()), len(given)
        st.caption(_("{right} of {count} right on the first try.", right=right, count=count))
