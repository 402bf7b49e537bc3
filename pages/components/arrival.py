"""Nothing to see: it brings the page to its top where another one is shown than before."""

from __future__ import annotations

import streamlit as st

from pages.components.files import bundled

_component = st.components.v2.component("arrival", html="<div></div>\n", js=bundled("arrival.js"))


def arrival(place: str, *, key: str) -> None:
    """Say which place is shown; Streamlit would keep the place scrolled as the last one was."""
    _component(data={"place": place}, key=key)
