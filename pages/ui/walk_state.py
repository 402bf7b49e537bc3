"""Where the walk stands and how the predictions went.

The link holds ``step=scores`` and ``block=2``.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.i18n import _

_STEP = "walk-step"
_PLACE = "walk-place"
_ANSWERS = "walk-answers"
_QUERY = "step"
_BLOCK = "block"


def current(names: Sequence[str], numbered: Sequence[str]) -> tuple[int, str | None]:
    """Return the number of the step to show, from 1, and a sentence where the link asks for none.

    names: of the model's steps, in order. numbered: the steps that an older link, which has a
    number, counts from 1.
    """
    linked = st.query_params.get(_QUERY)
    last = st.session_state.get(_STEP)
    if linked is not None and linked.isascii() and linked.isdigit() and len(linked) <= 4:
        number = nearest(int(linked), [n for n, name in enumerate(numbered, 1) if name in names])
        asked, is_there = numbered[number - 1], number == int(linked)
    else:
        asked = linked or last or names[0]
        is_there = linked is None or linked in names
    if asked in names:
        index = names.index(asked)
    else:  # where the model changed: as far on as before
        index = min(st.session_state[_PLACE], len(names) - 1) if asked == last else 0
    st.session_state[_STEP], st.session_state[_PLACE] = asked, index
    if linked is None or is_there:
        return index + 1, None
    rule = _("There is no step {text} in the walk of this model; step {number} is shown.")
    return index + 1, rule.format(text=f"“{linked[:20]}”", number=index + 1)


def nearest(wanted: int, numbers: Sequence[int]) -> int:
    """Return the number nearest to the one wanted; the later of two."""
    return min(numbers, key=lambda number: (abs(number - wanted), -number))


def go(name: str) -> None:
    """Show a step, and say so in the link."""
    st.session_state[_STEP] = name
    st.query_params[_QUERY] = name


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


def answered(question: str, *, is_right: bool) -> None:
    """Count an answer; only the first one to a question counts."""
    answers().setdefault(question, is_right)
