"""The script that Streamlit runs: the frame around every page, then the page."""

import streamlit as st

from pages import i18n
from pages.app import state
from pages.app.lessons import bar
from pages.app.navigation import frame, head, page_table
from pages.app.runs import shown_run
from pages.components import effects
from pages.i18n import _

i18n.follow_link()
page = frame.navigation()
facts = page_table.at(page.url_path)
title = _("Watch a Transformer learn")
if page.url_path:  # tabs, history and bookmarks tell pages apart by it
    title = f"{_(facts.title)} · {title}"
st.set_page_config(page_title=title, page_icon=frame.ICON, layout="wide")
effects.hide_icons()
effects.follow_theme(is_dark=state.theme() == "dark")
head.begin()
frame.lead_to_game()
links = frame.strip()
frame.explain()
bar.bar()
frame.notices()
with st.container(key="page"):
    run = shown_run.run_without_model(facts)
    if run is None:
        page.run()
    else:
        shown_run.turn_away(facts, run)
frame.finish()
head.draw()
frame.share(links)
