"""Session state: finished and running measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from tfm_core.config import Experiment, to_json
from tfm_core.inspect.speed.report import SpeedReport

if TYPE_CHECKING:
    from tfm_core.inspect.speed.runner import BenchmarkProcess, BenchmarkRunner

_ASKED, _RUNNING, _FOUND = "speed-asked", "speed-running", "speed-found"


@dataclass(frozen=True, slots=True)
class BenchmarkRequest:
    """A comparison of the registry, on a model and a device; ``label`` names the model."""

    name: str
    experiment: Experiment
    device: str
    label: str

    @property
    def key(self) -> str:
        return f"{self.name} {self.device} {to_json(self.experiment)}"


@st.cache_resource(show_spinner=False)
def runner() -> BenchmarkRunner:
    from tfm_core.inspect.speed.runner import BenchmarkRunner

    return BenchmarkRunner()


def ask(request: BenchmarkRequest) -> None:
    """Request a measurement; it begins as soon as no other one runs."""
    st.session_state[_ASKED] = request


def requested() -> BenchmarkRequest | None:
    return st.session_state.get(_ASKED)


def running() -> BenchmarkProcess | None:
    return st.session_state.get(_RUNNING)


def begun(measurement: BenchmarkProcess) -> None:
    st.session_state[_RUNNING] = measurement


def keep(report: SpeedReport) -> None:
    request = requested()
    if request is not None:
        results()[request.key] = (request.label, report)
    forget()


def forget() -> None:
    st.session_state.pop(_ASKED, None)
    st.session_state.pop(_RUNNING, None)


def results() -> dict[str, tuple[str, SpeedReport]]:
    """Return everything found in this session: key -> name of the model, report."""
    reports: dict[str, tuple[str, SpeedReport]] = st.session_state.setdefault(_FOUND, {})
    return reports


def result(request: BenchmarkRequest) -> SpeedReport | None:
    entry = results().get(request.key)
    return None if entry is None else entry[1]
