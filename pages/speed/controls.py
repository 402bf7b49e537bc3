"""Controls: model and comparison, and why one does not apply."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.speed import state as speed_state
from pages.speed.state import BenchmarkRequest
from pages.ui import show, state
from pages.ui.address import parameters, view_link
from pages.ui.runs import runs_access
from pages.ui.settings import model_choice
from pages.ui.typed import escape
from tfm_core.inspect.speed.registry import COMPARISONS

COMPARE = parameters.named(
    "compare",
    {name: comparison.label for name, comparison in COMPARISONS.items()},
    key="speed-compare",
    is_always_said=True,
)


def pick() -> BenchmarkRequest | None:
    """Draw the choices; return None, with a message, if nothing can be measured."""
    name = _compare()
    chosen, facts, _choices = model_choice.line("speed", is_trained=True)
    facts.caption(_("On **{model}**", model=escape(chosen.label)))
    if chosen.experiment is None:
        st.info(
            _("A published model has only shapes. Choose another model."),
            icon=":material/straighten:",
        )
        return None
    st.markdown(_(COMPARISONS[name].help))
    return BenchmarkRequest(name, chosen.experiment, state.device(), escape(chosen.label))


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
    """Offer to measure, or show why it makes no sense here; return whether it is offered."""
    why = COMPARISONS[request.name].why_not(request.experiment)
    if why is not None:
        st.info(_(why), icon=":material/info:")
        return False
    report = speed_state.result(request)
    words = _("Measure again") if report is not None and report.timed else _("Measure")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            words,
            type="primary",
            icon=":material/speed:",
            key="speed-start",
            disabled=speed_state.requested() is not None,
            on_click=speed_state.request,
            args=(request,),
        )
        comparison, device = COMPARISONS[request.name], show.device(request.device)
        expected = [_("About {n} s on {device}.", n=comparison.seconds, device=device)]
        if any(run.problem is None and run.status.is_alive for run in runs_access.store().list()):
            expected.append(_("A run is training: times will be longer."))
        st.caption(" ".join(expected))
    return True
