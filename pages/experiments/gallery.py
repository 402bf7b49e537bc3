"""All experiments by theme, each with what to expect and how long it takes; one is opened."""

from __future__ import annotations

import streamlit as st

from pages.experiments.link import EXPERIMENT
from pages.i18n import _
from pages.ui import run_time, state, view_link
from tfm_core.inspect.experiments import DEMONSTRATIONS
from tfm_core.inspect.experiments.demonstration import THEMES, Demonstration, by_theme
from tfm_core.inspect.experiments.result import RunIndex
from tfm_core.runs.expected_time import Forecast

_HEIGHT = 560  # pixels: as high as the first screen leaves


def chosen(shelf: RunIndex) -> Demonstration:
    """Show the experiments, and return the one that is opened."""
    problem = view_link.receive(EXPERIMENT)
    shown = str(st.session_state[EXPERIMENT.key])
    times = _times(state.device())
    with st.container(height=_HEIGHT, border=False, key="experiments-list"):
        for theme, known in by_theme(DEMONSTRATIONS).items():
            if not known:
                continue
            key = f"experiments-{theme}"
            names = [one.name for one in known]
            st.session_state[key] = shown if shown in names else None
            st.radio(
                _(THEMES[theme]),
                names,
                index=None,
                format_func=lambda name: _(DEMONSTRATIONS[name].title),
                captions=[_caption(one, shelf, times) for one in known],
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


def _caption(one: Demonstration, shelf: RunIndex, times: dict[str, Forecast | None]) -> str:
    """Say what is compared, and that it is there already or how long it takes."""
    found = shelf.of(one)
    if any(run.status.is_active for run in found.runs):
        when = _("training now")
    elif found.is_whole:
        when = _("trained")
    else:
        when = run_time.words(run_time.now(times[one.name]))
    arms = " / ".join(_(arm.label) for arm in one.arms)
    return f"{arms} · {when}"


@st.cache_data(ttl=60, show_spinner=False)
def _times(device: str) -> dict[str, Forecast | None]:
    """Return how long all runs of each experiment take here, one after the other."""
    return {
        name: run_time.in_sequence([one.experiment(arm) for arm in one.arms], device=device)
        for name, one in DEMONSTRATIONS.items()
    }
