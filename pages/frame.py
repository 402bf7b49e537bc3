"""The script that Streamlit runs: the frame around every page, then the page."""

import streamlit as st

from pages import i18n
from pages.components import effects
from pages.i18n import _
from pages.ui import state
from pages.ui.lessons import task_view
from pages.ui.navigation import frame, page_table
from pages.ui.runs import foreign_run
from pages.ui.tour import bar as tour

i18n.follow_link()
st.set_page_config(page_title=_("Watch a Transformer learn"), page_icon=frame.ICON, layout="wide")
effects.hide_icons()
effects.follow_theme(is_dark=state.theme() == "dark")
page = frame.navigation()
if page.url_path:  # tabs, history and bookmarks tell pages apart by it
    st.set_page_config(page_title=f"{page.title} · {_('Watch a Transformer learn')}")
frame.lead_to_game()
links = frame.strip()
frame.explain()
tour.bar()
frame.notices()
task_view.bar()
with st.container(key="page"):
    facts = page_table.at(page.url_path)
    run = foreign_run.run_without_model(facts)
    if run is None:
        page.run()
    else:
        foreign_run.turn_away(facts, run)
frame.finish()
frame.share(links)
