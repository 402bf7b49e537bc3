"""A button of which every press counts, however quickly one follows another.

Streamlit merges presses that come while a script runs into one; this one sends how many there were.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.components.component import component, is_whole

MAX = 50  # presses taken at once

_component = component(
    "counted_button",
    css=["counted_button.css"],
    html='<button type="button" class="counted"></button>\n',
)


def counted_button(
    label: str, *, help: str, path: str, on_press: Callable[[int], None], key: str
) -> None:
    """Show a button; ``on_press`` hears, before the next run, how often it was pressed since.

    path: its icon, the ``d`` of an SVG path in a square of 24.
    """

    def pressed(value: object) -> None:
        times = new_presses(value, st.session_state.get(f"{key}-had"))
        if times:
            st.session_state[f"{key}-had"] = value
            on_press(times)

    _component(
        {"label": label, "help": help, "path": path},
        on={"pressed": pressed},
        width="content",
        key=key,
    )


def new_presses(sent: object, had: object) -> int:
    """Return how many presses are new. sent, had: the button's own name and its count so far."""
    if not (isinstance(sent, list) and len(sent) == 2 and isinstance(sent[0], str)):
        return 0
    count = sent[1]
    if not is_whole(count):
        return 0
    is_same = isinstance(had, list) and had[:1] == sent[:1]
    before = had[1] if is_same and isinstance(had, list) else 0
    return max(0, min(MAX, count - before))
