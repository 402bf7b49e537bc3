"""The body of a page as a part of its own: a press in it does not draw the frame anew."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.ui import state


def body(draw: Callable[[], None]) -> None:
    """Draw the body of a page, now and at each press in it.

    The frame shows the current run and links to the configuration: where a press has changed one
    of them, all is drawn anew.
    """
    before: tuple[object, ...] | None = None

    def part() -> None:
        nonlocal before
        draw()
        now = state.current_run_id(), state.current_draft().edition
        if before not in (None, now):
            state.draw_anew()
        before = now

    st.fragment(part)()
