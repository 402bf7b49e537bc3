"""Home: what this is, one press to begin, and what was trained before."""

import streamlit as st

from pages.home import preset_cards
from pages.i18n import _
from pages.ui import page_table, run_list, show, visitors

RECENT = 3

show.header("home")
runs = visitors.listed()
preset_cards.first(runs)
if runs:
    st.header(_("Recent runs"), anchor=False)
    for run in runs[:RECENT]:
        run_list.row(run, menu=False)
if len(runs) > RECENT:
    st.page_link(
        page_table.path_of("runs"),
        label=_("All {n} runs").format(n=len(runs)),
        icon=":material/stacked_line_chart:",
    )

preset_cards.rest(runs)
