"""Runs: all trainings, to open, control, extend, rename or delete."""

from __future__ import annotations

import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.runs import run_list
from pages.app.typed import escape
from pages.i18n import _
from pages.runs import bring, filter, room

offers = show.header("runs")
room.storage_problem()
if why_not := visitors.why_not():
    st.caption(f":material/lock: {escape(why_not)}")
bring.area(offers)

runs = room.with_deleted(visitors.listed(with_suspects=True))
if runs:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        shown, first, n = filter.choose(runs)
        filter.picked_bar(runs)
    gone = room.deleted_ids()
    apart = filter.distinguishing_names(shown)
    with st.container(key="runs-list", gap=None):
        for run in shown:
            if run.id in gone:
                run_list.gone(run)
            else:
                run_list.row(run, menu=True, apart=apart.get(run.id, ""), before=filter.tick_box)
    if not shown:
        st.caption(_("No run matches."))
    filter.page_buttons(shown, first, n)
else:
    show.empty(_("No runs yet."), _("Choose a task"), "home")

room.undo_button()
room.disk_line()
run_list.labels_dialog()
