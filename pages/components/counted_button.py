"""A button of which every press counts, however quickly one follows another.

Streamlit merges presses that come while a script runs into one; this one sends how many there were.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.components.files import bundled, joined

MOST = 50  # presses taken at once

_component = st.components.v2.component(
    "counted_button",
    html='<button type="button" class="counted"></button>\n',
    css=joined("counted_button.css"),
    js=bundled("counted_button.js"),
)


def counted_button(
    label: str, *, help: str, path: str, on_press: Callable[[int], None], key: str
) -> None:
    """Show a button; ``on_press`` hears, before the next run, how often it was pressed since.

    path: its icon, the ``d`` of an SVG path in a square of 24.
    """

    def pressed() -> None:
        times = new_presses(
            st.session_state.get(key, {}).get("pressed"), st.session_state.get(f"{key}-had")
        )
        if times:
            st.session_state[f"{key}-had"] = st.session_state.get(key, {}).get("pressed")
            on_press(times)

    _component(
        data={"label": label, "help": help, "path": path},
        on_pressed_change=pressed,
        width="content",
        key=key,
    )


def new_presses(sent: object, had: object) -> int:
    """Return how many presses are new. sent, had: the button's own name and its count so far."""
    if not (isinstance(sent, list) and len(sent) == 2 and isinstance(sent[0], str)):
        return 0
    count = sent[1]
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    is_same = isinstance(had, list) and had[:1] == sent[:1]
    before = had[1] if is_same and isinstance(had, list) else 0
    return max(0, min(MOST, count - before))
