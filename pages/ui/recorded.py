"""What a page says of a recorded run that it shows: that it is one, and how to train one's own."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import offers, run_actions
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run


def badge(run: Run) -> str:
    """Return a badge in markdown for a recorded run, else nothing."""
    return f":violet-badge[:material/inventory_2: {_('Recorded')}]" if run.meta.recorded else ""


def note(run: Run, *, key: str) -> None:
    """Say of a recorded run what that is, beside a button that trains its preset; else nothing.

    key: begins the button's.
    """
    if not run.meta.recorded:
        return
    name = run.meta.preset
    with st.container(horizontal=True, vertical_alignment="center"):
        words = _("This model comes with the app, trained beforehand.")
        st.caption(f"{badge(run)} {words}", width="content")
        if name not in PRESETS:
            return
        label = _("Train your own, {time}").format(time=offers.takes(name))
        if st.button(label, icon=":material/play_arrow:", key=f"{key}-own"):
            run_actions.start_preset(name)
