"""Own data: take in what one has, look at it, keep it, and learn it like any other task."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.i18n import _
from pages.own_data import learn, pictures, shelf, state, texts
from pages.own_data.link import KIND
from pages.ui import show, view_link

VIEWS: dict[str, Any] = {"pictures": pictures, "pairs": texts, "labels": texts, "text": texts}


def page() -> None:
    show.header("own-data")
    kind = view_link.choice(_("Data"), KIND, is_labelled=False)
    view = VIEWS[kind]
    own = state.chosen(shelf.sets(kind))
    left, right = st.columns([2, 5], gap="medium")
    with left:
        draft = view.add(kind)
        shelf.rows(kind, None if draft is not None else own)
    with right:
        if draft is not None:
            view.preview(draft)
        elif own is not None and own.problem is not None:
            shelf.damaged(own)
        elif own is not None:
            learn.heading(own)
            learn.offers(own)
            view.look(own)
        else:
            view.nothing_yet()


page()
