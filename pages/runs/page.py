"""Runs: every training that was kept, to open, go on with, rename or delete."""

import streamlit as st

from pages.i18n import _
from pages.runs import filter
from pages.ui import run_actions, run_list, runs_access, show, state
from pages.ui.typed import escape

show.header("runs")

deleted = state.deleted_run()
if deleted is not None:
    run_id, name = deleted
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="undo-bar"):
        st.markdown(_("Deleted **{name}**.").format(name=escape(name)), width="stretch")
        st.button(
            _("Undo"),
            key="undo-delete",
            icon=":material/undo:",
            on_click=run_actions.undelete,
            args=(run_id,),
        )

runs = runs_access.store().list()
if runs:
    shown = filter.choose(runs)
    for run in shown:
        run_list.row(run, menu=True)
    if not shown:
        st.caption(_("No run matches; change the words or the kind above."))
else:
    show.empty(
        _("No run yet. Pick something to learn, and its run will be kept here."),
        _("Choose what to learn"),
        "home",
    )
