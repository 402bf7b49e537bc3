"""A plan for 45 minutes: what a teacher does with a class, on one page to print."""

from __future__ import annotations

import streamlit as st

from pages.app import show
from pages.i18n import _

_PAGES = {  # in the order of the plan, with the view that it begins with
    "try": {"run": "recorded-korean"},
    "by-hand": {},
    "attention": {"run": "recorded-korean"},
    "knockouts": {"run": "recorded-korean"},
    "challenges": {},
    "class": {},
}


def page() -> None:
    """Show the plan, and lead to its pages."""
    show.header("plan", is_article=True)
    with st.container(horizontal=True, gap="small", key="plan-pages"):
        st.caption(_("Prints on one A4 page."), width="content")
        for name, query in _PAGES.items():
            show.link(name, query=query)
    words = show.words("plan")
    with st.container(key="plan"):
        show.prose(f"{words.intro}\n\n{words.more}")


if __name__ == "__main__":
    page()
