"""Press a button that a page has just drawn: what was made for a press is saved by that press."""

from __future__ import annotations

import streamlit as st

from pages.components.files import bundled

_component = st.components.v2.component(
    "press", html='<div class="press"></div>\n', js=bundled("press.js")
)


def press(target: str, *, mark: str, key: str) -> None:
    """Press the button in the container of key ``target``, once for each new ``mark``."""
    _component(data={"target": target, "mark": mark}, key=key)
