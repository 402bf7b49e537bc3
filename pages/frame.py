"""The script that Streamlit runs: the frame around every page, then the page."""

import streamlit as st

from pages.i18n import _
from pages.ui import frame, style

st.set_page_config(page_title=_("Watch a Transformer learn"), page_icon=frame.ICON, layout="wide")
style.apply()
page = frame.navigation()
frame.sidebar()
frame.notices()
page.run()
frame.share()
