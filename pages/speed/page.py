"""Making it fast: each technique against the plain code, measured on the reader's model."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.speed import controls, result
from pages.speed import state as speed_state
from pages.ui import show, state
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import recorded

TICK = 0.7  # seconds between refreshes


def page() -> None:
    show.header("speed")
    request = controls.pick()
    if request is None:
        return
    is_offered = controls.press(request)
    if speed_state.requested() is not None:
        st.fragment(_progress, run_every=TICK)()
    report = speed_state.result(request)
    if report is not None:
        result.result(report)
    elif speed_state.requested() is None:
        record = recorded(request.name)
        if is_offered and record is None:
            st.caption(_("Nothing measured yet for this model."))
        if record is not None:
            result.recorded_result(*record)
    result.code(request.name)


def _progress() -> None:
    request = speed_state.requested()
    if request is None:  # stopped by an earlier refresh
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
            if measurement is not None:
                measurement.stop(_("Stopped by you."))
                speed_state.keep(measurement.wait(2.0))
            speed_state.forget()
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
    speed_state.set_running(measurement)
    st.progress(0.0, text=_("Starting"))


page()
