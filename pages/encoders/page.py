"""Reading: encoder-only models on sentences, gaps and patches."""

from __future__ import annotations

import streamlit as st

from pages.encoders import blanks, patches, sentiment
from pages.encoders.run import VIEW
from pages.i18n import _, content
from pages.ui import show
from pages.ui.address import view_link

VIEWS = {"sentiment": sentiment.view, "blanks": blanks.view, "patches": patches.view}


def page() -> None:
    show.header("encoders")
    with st.container(horizontal=True, vertical_alignment="center"):
        view = view_link.choice(_("View"), VIEW, is_labelled=False)
        with st.popover(_("How it works"), icon=":material/help:"):
            show.prose(content(f"encoders_{view}"))
    VIEWS[view]()


page()
