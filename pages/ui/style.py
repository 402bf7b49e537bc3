"""The few rules of style that Streamlit's theme has no setting for: see ``style.css``."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.components import icons

RULES = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def apply() -> None:
    """Give the page the rules, and screen readers its words; neither takes room on it."""
    st.html(f"<style>{RULES}</style>")
    icons.quieten()
