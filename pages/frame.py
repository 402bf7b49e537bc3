"""The script that Streamlit runs: the frame around every page, then the page."""

import streamlit as st

from pages.ui import frame, style
from pages.ui.words import _

st.set_page_config(page_title=_("Watch a Transformer learn"), page_icon=frame.ICON, layout="wide")
style.apply()
page = frame.navigation()
frame.sidebar()
frame.notices()
page.run()
frame.share()
