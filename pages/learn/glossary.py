"""Glossary: every term, what it means, and the page that shows it."""

from __future__ import annotations

import streamlit as st

from pages.app import show
from pages.app.navigation.page_table import CHAPTERS, PAGES
from pages.app.navigation.terms import TERMS
from pages.i18n import _


def page() -> None:
    """Show the terms of each chapter of the path, folded."""
    show.header("glossary")
    for chapter, title in CHAPTERS.items():
        some = sorted(
            (term for term in TERMS if PAGES[term.page].chapter == chapter),
            key=lambda term: term.name.casefold(),
        )
        with (
            st.expander(_("{title}: {n} terms", title=_(title), n=len(some))),
            st.container(key=f"glossary-{chapter}", gap="small"),
        ):
            for term in some:
                facts = PAGES[term.page]
                where = _("See it: {page}", page=_(facts.title))
                label = f"**{term.name}** {term.meaning} :blue[{where}]"
                st.page_link(facts.path, label=label, query_params=dict(term.view))


page()
