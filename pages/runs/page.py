"""Runs: every training that was kept, to open, steer, go on with, rename or delete."""

import streamlit as st

from pages.i18n import _
from pages.runs import bring, filter, host, room, undo
from pages.ui import run_list, show, visitors

show.header("runs")
room.hindrance()
bring.part()

runs = undo.among(visitors.listed())
if runs:
    shown = filter.choose(runs)
    for run in shown:
        if undo.is_gone(run):
            run_list.gone(run)
        else:
            run_list.row(run, menu=True)
    if not shown:
        st.caption(_("No run matches; change the words or the kind above."))
else:
    show.empty(
        _("No run yet. Pick something to learn, and its run will be kept here."),
        _("Choose what to learn"),
        "home",
    )

undo.line()
room.line()
host.part()
