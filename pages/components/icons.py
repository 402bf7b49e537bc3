"""Streamlit's icons, out of a screen reader's way.

An icon always stands beside its words or on a button that has a name, and Streamlit names it after
its file: "check_circle icon". Nothing in Streamlit's own settings changes that.
"""

from __future__ import annotations

from pages.components.component import component

_mount = component("icons", html="", isolate_styles=False)


def quieten() -> None:
    """Let screen readers skip the icons of the page, those that come later too."""
    _mount(key="quiet-icons")
