"""Where the walk stands and how the predictions went; the link holds ``step=scores``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.ui import view_link
from pages.ui.parameters import Choice, Unfit, one_of, whole

_STEP = "walk-step"
_PLACE = "walk-place"
_ANSWERS = "walk-answers"
_GIVEN, _REVEALED = "walk-given", "walk-revealed"
STEP = "step"  # in the link


@dataclass(frozen=True)
class StepName(Choice):
    """The name of a step. numbered: the steps that an older link counts, from 1."""

    numbered: tuple[str, ...] = ()

    def parse(self, text: str) -> str:
        """Return the name; a number is one of an older link, and the nearest step there is."""
        if text in self.names:
            return text
        rule, number = one_of(self.names), whole(text)
        if number is None:
            raise Unfit(rule)
        known = [n for n, name in enumerate(self.numbered, 1) if name in self.names]
        found = nearest(number, known)
        if found != number:
            raise Unfit(rule, self.numbered[found - 1])
        return self.numbered[found - 1]


def current(names: Sequence[str], numbered: Sequence[str]) -> tuple[int, str]:
    """Return the number of the step to show, from 1, and a sentence where the link asks for none.

    names: of the model's steps, in order. numbered: the steps that an older link, which has a
    number, counts from 1.
    """
    parameter = StepName(STEP, first=names[0], names=tuple(names), numbered=tuple(numbered))
    text = parameter.found_in(view_link.query())
    last = st.session_state.get(_STEP, names[0])
    asked = last if text is None else text
    nearest_name = names[0]
    if asked == last:  # where the model changed: as far on as before
        nearest_name = names[min(st.session_state.get(_PLACE, 0), len(names) - 1)]
    if text is None:
        shown, problem = (asked if asked in names else nearest_name), ""
    else:
        shown, problem = parameter.follow(text, nearest_name)
    place = names.index(shown)
    st.session_state[_STEP] = asked if asked == last else shown
    st.session_state[_PLACE] = place
    return place + 1, problem


def nearest(wanted: int, numbers: Sequence[int]) -> int:
    """Return the number nearest to the one wanted; the later of two."""
    return min(numbers, key=lambda number: (abs(number - wanted), -number))


def go(name: str) -> None:
    """Show a step, and say so in the link."""
    st.session_state[_STEP] = name
    view_link.put({STEP: name})


def picked(key: str, name: str) -> str:
    """Return the step that a select box under ``key`` holds; ``name`` before it is drawn."""
    return str(st.session_state.get(key, name))


def hold(key: str, value: object) -> None:
    """Make a widget show a value that something else decides."""
    st.session_state[key] = value


def answers() -> dict[str, bool]:
    """Return the questions answered, and whether the first answer was right."""
    given: dict[str, bool] = st.session_state.setdefault(_ANSWERS, {})
    return given


def answered(question: str, given: str | float, *, is_right: bool) -> None:
    """Keep an answer; only the first one to a question counts. A right one reveals."""
    answers().setdefault(question, is_right)
    _last()[question] = given
    if is_right:
        _revealed().add(question)


def shown(question: str) -> None:
    """Reveal the answer; a question that was not answered before counts as not known."""
    answers().setdefault(question, False)
    _last().pop(question, None)
    _revealed().add(question)


def last_answer(question: str) -> str | float | None:
    """Return what was answered last; None before that, and where the answer was shown."""
    return _last().get(question)


def is_revealed(question: str) -> bool:
    """Return whether the question was answered rightly, or its answer shown."""
    return question in _revealed()


def _last() -> dict[str, str | float]:
    given: dict[str, str | float] = st.session_state.setdefault(_GIVEN, {})
    return given


def _revealed() -> set[str]:
    names: set[str] = st.session_state.setdefault(_REVEALED, set())
    return names
