"""One line above a page's subject: what is shown, and behind "Change" the choices of it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _


def fact_line(key: str) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw a line; return the place of its facts, and the popover with the choices.

    Draw the choices first: the facts name what was chosen. key: begins the keys of both.
    """
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"{key}-facts"
    ):
        facts = st.container(width="stretch")
        choices = st.popover(_("Change"), icon=":material/tune:", key=f"{key}-change")
    return facts, choices


def joined(*facts: str) -> str:
    """Return the facts that are there as one line of Markdown."""
    return " · ".join(filter(None, facts))
