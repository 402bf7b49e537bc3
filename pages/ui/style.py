"""The few rules of style that Streamlit's theme has no setting for: see ``style.css``.

The page is served with them, so that nothing on it moves when they come.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.components import icons

RULES = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def apply() -> None:
    """Give screen readers the page's words; this takes no room on it."""
    icons.quieten()


def mark_section(index: int) -> None:
    """Mark the section of the bar that holds the page in sight; Streamlit marks pages alone."""
    place = f"[data-testid='stTopNav'] > :nth-child({index + 1}) [data-testid='stTopNavSection']"
    look = "font-weight: 600; box-shadow: inset 0 -2px 0 light-dark(#1f6aa8, #6db3ea)"
    st.html(f"<style>{place} {{ {look} }}</style>")
