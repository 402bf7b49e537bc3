"""Making it fast: each way against the plain one, on the user's model, measured now."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.speed import controls, live, result, state, table
from pages.ui import show


def page() -> None:
    """Choose a comparison, measure it, read what it says."""
    show.header("speed")
    asked = controls.pick()
    if asked is None:
        return
    is_offered = controls.press(asked)
    live.live()
    report = state.result(asked)
    if report is not None:
        result.result(report)
    elif is_offered and state.asked() is None:
        st.caption(_("Nothing is measured yet for this model: predict first who wins, then press."))
    result.code(asked.name)
    table.table()


page()
