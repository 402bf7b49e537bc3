"""Home: a recorded training, next steps, presets, recent runs and the page map."""

import streamlit as st

from pages.home import doors, hero, page_map, preset_list
from pages.i18n import _
from pages.ui import show
from pages.ui.accounts import visitors
from pages.ui.navigation import page_table
from pages.ui.runs import run_list

RECENT = 3

show.header("home")
hero.film()
doors.doors()
hero.digit()
st.fragment(preset_list.presets)()  # a press redraws only this part

runs = visitors.listed()
if runs:
    st.header(_("Recent runs"), anchor=False)
    for run in runs[:RECENT]:
        run_list.row(run, menu=False)
if len(runs) > RECENT:
    st.page_link(
        page_table.path_of("runs"),
        label=_("All {n} runs", n=len(runs)),
        icon=":material/stacked_line_chart:",
    )

page_map.page_map()
