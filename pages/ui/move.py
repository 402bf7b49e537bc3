"""On which device a run goes on: the devices to choose from, and what another one changes."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import forecast, show
from pages.ui.typed import escape
from tfm_core.config.advice import advice_on_moving
from tfm_core.runs.run import Run


def choices(run: Run) -> list[str]:
    """Return where a run can go on, its own device first; the CPU alone while others are unknown.

    One that this machine lacks is left out as soon as that is known.
    """
    before = "cpu" if run.meta.recorded else run.meta.device
    future = forecast.devices()
    if not future.done() or future.exception() is not None:
        return list(dict.fromkeys([before, "cpu"]))
    there = [device.name for device in future.result() if device.available]
    return sorted(there, key=lambda name: name != before)


def select(run: Run, names: list[str], *, key: str) -> str:
    """Ask on which of some devices a run goes on, and say what it changes; return its name."""
    chosen = st.selectbox(
        _("Device"), names, format_func=show.device, key=f"{key}-{run.id}-{'-'.join(names)}"
    )
    before = "cpu" if run.meta.recorded else run.meta.device
    if chosen != before:
        st.caption(escape(_(advice_on_moving(before, chosen, run.experiment))))
    return chosen
