"""The experiments by theme, with their times."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.address import parameters, view_link
from pages.ui.runs import run_time
from tfm_core.inspect.experiments import DEMONSTRATIONS
from tfm_core.inspect.experiments.demonstration import THEMES, Demonstration, by_theme
from tfm_core.inspect.experiments.result import RunIndex
from tfm_core.runs.record.expected_time import Forecast

_HEIGHT = 560  # pixels left on the first screen
EXPERIMENT = parameters.named(
    "experiment",
    {name: demonstration.title for name, demonstration in DEMONSTRATIONS.items()},
    key="experiment-shown",
)


@dataclass(frozen=True, slots=True)
class ExperimentsView:
    """What the page shows."""

    experiment: str = view_link.linked(EXPERIMENT)


def chosen(shelf: RunIndex) -> Demonstration:
    problem = view_link.receive(EXPERIMENT)
    shown = str(st.session_state[EXPERIMENT.key])
    times = _times(state.device())
    with st.container(height=_HEIGHT, border=False, key="experiments-list"):
        for theme, demonstrations in by_theme(DEMONSTRATIONS).items():
            if not demonstrations:
                continue
            key = f"experiments-{theme}"
            names = [demonstration.name for demonstration in demonstrations]
            st.session_state[key] = shown if shown in names else None
            st.radio(
                _(THEMES[theme]),
                names,
                index=None,
                format_func=lambda name: _(DEMONSTRATIONS[name].title),
                captions=[
                    _caption(demonstration, shelf, times) for demonstration in demonstrations
                ],
                key=key,
                on_change=_open,
                args=(key,),
            )
    view_link.warn(problem)
    view_link.say(EXPERIMENT, shown)
    return DEMONSTRATIONS[shown]


def _open(key: str) -> None:
    picked = st.session_state[key]
    if picked is not None:
        st.session_state[EXPERIMENT.key] = picked


def _caption(
    demonstration: Demonstration, shelf: RunIndex, times: dict[str, Forecast | None]
) -> str:
    trained = shelf.of(demonstration)
    if any(run.status.is_active for run in trained.runs):
        return _("training now")
    if trained.is_whole:
        return _("trained")
    return run_time.words(run_time.now(times[demonstration.name]))


@st.cache_data(ttl=60, show_spinner=False)
def _times(device: str) -> dict[str, Forecast | None]:
    return {
        name: run_time.in_sequence(
            [demonstration.experiment(arm) for arm in demonstration.arms], device=device
        )
        for name, demonstration in DEMONSTRATIONS.items()
    }
