"""Making it fast: each way against the plain one, on the user's model, measured now."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.speed import controls, live, result, state
from pages.ui import show
from tfm_core.inspect.speed.recorded import recorded


def page() -> None:
    """Choose a comparison, run it, read the result."""
    show.header("speed")
    request = controls.pick()
    if request is None:
        return
    is_offered = controls.press(request)
    live.live()
    report = state.result(request)
    if report is not None:
        if result.is_made(request.name, report):
            result.result(report)
    elif state.requested() is None:
        if is_offered:
            st.caption(_("Nothing measured yet for this model."))
        known = recorded(request.name)
        if result.is_made(request.name, None if known is None else known.report):
            result.recorded_one(request.name)
    result.code(request.name)
    result.table()


page()
