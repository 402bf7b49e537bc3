"""Ticks: what a visitor has done on the path; only the browser keeps them."""

from __future__ import annotations

import streamlit as st

from pages.ui import state
from pages.ui.navigation.page_table import PAGES, PageFacts

_MARKS = "ticks"
ACT = "act"
"""The mark of a page without questions: its main act was done."""


def mark(what: str = ACT) -> None:
    """Mark a question, or the main act, of the page in sight as done."""
    page = state.page()
    if PAGES[page].chapter if page in PAGES else False:
        marks().setdefault(page, set()).add(what)


def is_done(page: PageFacts) -> bool:
    """Return whether a page of the path is done: its questions, or else its main act."""
    return len(marks().get(page.name, ())) >= max(1, page.questions)


def marks() -> dict[str, set[str]]:
    """Return what was done, by page."""
    found: dict[str, set[str]] = st.session_state.setdefault(_MARKS, {})
    return found
