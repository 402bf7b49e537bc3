"""Undo: what this browser deleted last can be brought back, from any tab of it."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import run_actions, runs_access, show, visitors
from pages.ui.typed import escape


def bar() -> None:
    """Offer to bring the run back that was deleted last; nothing where there is none."""
    deleted = runs_access.store().deleted_by(visitors.visitor().owner)
    if not deleted:
        return
    run = deleted[0]
    until = runs_access.store().kept_until(run.id)
    if until is None:  # its room was needed this very moment
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="undo-bar"):
        words = _(
            "Deleted **{name}**. It can be brought back until {time}, or until room is needed."
        )
        name = escape(run.meta.name)
        st.markdown(words.format(name=name, time=show.clock(until)), width="stretch")
        st.button(
            _("Undo"),
            key="undo-delete",
            icon=":material/undo:",
            on_click=run_actions.undelete,
            args=(run.id,),
        )
