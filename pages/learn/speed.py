"""Making it fast: each way against the plain one, on the user's model, measured now."""

from __future__ import annotations

import streamlit as st

from pages.ui import show, speed_controls, speed_live, speed_result, speed_state, speed_table
from pages.ui.words import _


def page() -> None:
    """Choose a comparison, measure it, read what it says."""
    show.header("speed")
    asked = speed_controls.pick()
    if asked is None:
        return
    is_offered = speed_controls.press(asked)
    speed_live.live()
    report = speed_state.result(asked)
    if report is not None:
        speed_result.result(report)
    elif is_offered and speed_state.asked() is None:
        st.caption(_("Nothing is measured yet for this model: predict first who wins, then press."))
    speed_result.code(asked.name)
    speed_table.table()


page()
