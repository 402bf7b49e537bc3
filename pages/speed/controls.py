"""Controls: model and comparison, and why one does not apply."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.speed import state as speed_state
from pages.speed.link import COMPARE
from pages.speed.state import BenchmarkRequest
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.runs import runs_access
from pages.ui.settings import model_choice
from pages.ui.typed import escape
from tfm_core.config import Experiment
from tfm_core.inspect.speed.registry import COMPARISONS


def pick() -> BenchmarkRequest | None:
    """Draw the choices; None, with a sentence on the page, where nothing can be measured."""
    left, right = st.columns(2)
    with left:
        chosen = model_choice.chosen(is_trained=True)
    with right:
        name = _compare()
    if chosen.experiment is None:
        st.info(
            _("A published model has only shapes. Choose another model."),
            icon=":material/straighten:",
        )
        return None
    device = state.device()
    label = escape(chosen.label)
    st.markdown(_(COMPARISONS[name].help))
    return BenchmarkRequest(name, chosen.experiment, device, label)


def _compare() -> str:
    unknown = view_link.receive(COMPARE)
    picked = st.selectbox(
        _("What to compare"),
        COMPARE.names,
        format_func=lambda name: _(COMPARE.labels[name]),
        key=COMPARE.key,
        persist_state="session",
    )
    view_link.warn(unknown)
    view_link.say(COMPARE, picked)
    return picked


def press(request: BenchmarkRequest) -> bool:
    """Offer to measure, or say why that makes no sense here; return whether it was offered."""
    why = _why_not(
        request.name, request.experiment.model_dump_json(), request.device, request.experiment
    )
    if why is not None:
        st.info(_(why), icon=":material/info:")
        return False
    comparison = COMPARISONS[request.name]
    is_busy = speed_state.requested() is not None
    report = speed_state.result(request)
    words = _("Measure again") if report is not None and report.timed else _("Measure")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            words,
            type="primary",
            icon=":material/speed:",
            key="speed-start",
            disabled=is_busy,
            on_click=speed_state.ask,
            args=(request,),
        )
        st.caption(_expectation(comparison.seconds, request, is_busy=comparison.needs_consent))
    return True


def _expectation(seconds: int, request: BenchmarkRequest, *, is_busy: bool) -> str:
    device = show.device(request.device)
    words = [_("{model}: about {n} s on {device}.", n=seconds, device=device, model=request.label)]
    if is_busy:
        words.append(_("Compiling keeps a core busy."))
    if any(run.problem is None and run.status.is_alive for run in runs_access.store().list()):
        words.append(_("A run is training: times will be longer."))
    return " ".join(words)


@st.cache_data(show_spinner=False, max_entries=256)
def _why_not(name: str, text: str, device: str, _experiment: Experiment) -> str | None:
    from tfm_core.inspect.speed.registry import COMPARISONS

    return COMPARISONS[name].why_not(_experiment, device)
