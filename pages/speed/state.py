"""What this session has measured and is measuring; the only module that knows its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from tfm_core.config import Experiment, to_json
from tfm_core.inspect.speed.report import Report

if TYPE_CHECKING:
    from tfm_core.inspect.speed.desk import Desk, Measurement

_ASKED, _RUNNING, _FOUND = "speed-asked", "speed-running", "speed-found"


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison of the registry, on a model and a device; ``label`` names the model."""

    name: str
    experiment: Experiment
    device: str
    label: str

    @property
    def key(self) -> str:
        """What tells one result from another."""
        return f"{self.name} {self.device} {to_json(self.experiment)}"


@st.cache_resource(show_spinner=False)
def desk() -> Desk:
    """Return the one place of this server where measurements run."""
    from tfm_core.inspect.speed.desk import Desk

    return Desk()


def ask(asked: Asked) -> None:
    """Want a measurement; it begins as soon as the place is free."""
    st.session_state[_ASKED] = asked


def asked() -> Asked | None:
    """Return what runs or waits for this session."""
    return st.session_state.get(_ASKED)


def running() -> Measurement | None:
    """Return the measurement of this session, if it has begun."""
    return st.session_state.get(_RUNNING)


def begun(measurement: Measurement) -> None:
    """Remember that the place is this session's."""
    st.session_state[_RUNNING] = measurement


def keep(report: Report) -> None:
    """Keep what was found for what was asked, and want nothing more."""
    wanted = asked()
    if wanted is not None:
        results()[wanted.key] = (wanted.label, report)
    forget()


def forget() -> None:
    """Want nothing more."""
    st.session_state.pop(_ASKED, None)
    st.session_state.pop(_RUNNING, None)


def results() -> dict[str, tuple[str, Report]]:
    """Return everything found in this session: key -> name of the model, report."""
    found: dict[str, tuple[str, Report]] = st.session_state.setdefault(_FOUND, {})
    return found


def result(wanted: Asked) -> Report | None:
    """Return what was found for the same question, if it was asked."""
    found = results().get(wanted.key)
    return None if found is None else found[1]
