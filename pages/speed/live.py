"""The measurement while it runs: its place in the queue, its progress, the button that stops it."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.speed import state as speed_state
from pages.ui import show, state
from tfm_core.inspect.speed.registry import COMPARISONS

TICK = 0.7  # seconds between two looks


def live() -> None:
    """Show the running measurement of this session, if any; redrawn by a timer."""
    if speed_state.requested() is not None:
        st.fragment(_progress, run_every=TICK)()


def _progress() -> None:
    request = speed_state.requested()
    if request is None:  # stopped from a tick before
        return
    measurement = speed_state.running()
    with st.container(border=True):
        st.markdown(f"**{_(COMPARISONS[request.name].label)}** · {request.label}")
        if measurement is None:
            _begin()
        else:
            report = measurement.poll()
            if not measurement.is_running:
                speed_state.keep(report)
                state.draw_anew()
            share = report.done / report.total if report.total else 0.0
            words = _(
                "{doing} · {seconds}",
                doing=_(report.doing or "Starting"),
                seconds=show.duration(measurement.seconds),
            )
            st.progress(share, text=words)
        if st.button(_("Stop"), icon=":material/stop:", key="speed-stop"):
            _stop()
            st.rerun()


def _begin() -> None:
    request = speed_state.requested()
    assert request is not None
    try:
        measurement = speed_state.runner().begin(request.name, request.experiment, request.device)
    except ValueError as error:
        st.progress(0.0, text=_("Waiting"))
        st.caption(_(error))
        return
    except OSError as error:
        speed_state.forget()
        show.problem(_("The measuring process could not start: {why}", why=_(error)))
        return
    speed_state.begun(measurement)
    st.progress(0.0, text=_("Starting"))


def _stop() -> None:
    measurement = speed_state.running()
    if measurement is not None:
        measurement.stop(_("Stopped by you."))
        speed_state.keep(measurement.wait(2.0))
    speed_state.forget()
