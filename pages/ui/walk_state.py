"""Where the walk stands and how the predictions went; the link holds ``step=8`` and ``block=2``."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.i18n import _

_STEP = "walk-step"
_ANSWERS = "walk-answers"
_QUERY = "step"
_BLOCK = "block"


def current(numbers: Sequence[int]) -> tuple[int, str | None]:
    """Return the step to show, and a sentence where the link asks for one that does not exist."""
    linked = st.query_params.get(_QUERY)
    if linked is None:
        wanted = st.session_state.get(_STEP, numbers[0])
        number = nearest(wanted, numbers)
        st.session_state[_STEP] = number
        return number, None
    digits = linked.isascii() and linked.isdigit() and len(linked) <= 4
    number = nearest(int(linked), numbers) if digits else numbers[0]
    st.session_state[_STEP] = number
    if linked == str(number):
        return number, None
    rule = _("There is no step {text} in the walk of this model; step {number} is shown.")
    return number, rule.format(text=f"“{linked[:20]}”", number=number)


def nearest(wanted: int, numbers: Sequence[int]) -> int:
    """Return the step nearest to the one wanted; the later of two."""
    return min(numbers, key=lambda number: (abs(number - wanted), -number))


def go(number: int) -> None:
    """Show a step, and say so in the link."""
    st.session_state[_STEP] = number
    st.query_params[_QUERY] = str(number)


def read_block(key: str, count: int) -> str | None:
    """Make the widget ``key`` show the block (from 0) that the link asks for; call it before.

    Returns a sentence where the link asks for one that does not exist.
    """
    linked = st.query_params.get(_BLOCK)
    if linked is None or linked == st.session_state.get(f"{key}-linked"):
        return None
    digits = linked.isascii() and linked.isdigit() and len(linked) <= 4
    if digits and 1 <= int(linked) <= count:
        st.session_state[key] = int(linked) - 1
        return None
    rule = _("This model has blocks 1 to {count}, and no block {text}.")
    return rule.format(count=count, text=f"“{linked[:20]}”")


def say_block(key: str, index: int) -> None:
    """Put the block (from 0) into the link; the first one is not said."""
    if index:
        st.query_params[_BLOCK] = str(index + 1)
    else:
        st.query_params.pop(_BLOCK, None)
    st.session_state[f"{key}-linked"] = st.query_params.get(_BLOCK)


def picked(key: str, number: int) -> int:
    """Return the step that a select box under ``key`` holds; ``number`` before it is drawn."""
    return int(st.session_state.get(key, number))


def hold(key: str, value: object) -> None:
    """Make a widget show a value that something else decides."""
    st.session_state[key] = value


def answers() -> dict[str, bool]:
    """Return the questions answered, and whether the first answer was right."""
    given: dict[str, bool] = st.session_state.setdefault(_ANSWERS, {})
    return given


def answered(question: str, *, is_right: bool) -> None:
    """Count an answer; only the first one to a question counts."""
    answers().setdefault(question, is_right)
