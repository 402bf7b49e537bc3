"""What the compared runs are called and how they are drawn, on the whole page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.i18n import _
from tfm_core.inspect.compare.names import names
from tfm_core.plots.comparison import slots
from tfm_core.runs.run import Run

_SLOTS = "compare-slots"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A run with its name on this page, and the place that its look follows."""

    run: Run
    name: str
    slot: int


def drawn(runs: Sequence[Run]) -> list[Drawn]:
    places = slots([run.id for run in runs], st.session_state.get(_SLOTS, {}))
    st.session_state[_SLOTS] = places
    by_difference = names([run.experiment for run in runs])
    return [
        Drawn(run, run.labels.name or _(name), places[run.id])
        for run, name in zip(runs, by_difference, strict=True)
    ]
