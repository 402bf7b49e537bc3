"""Session state: finished and running measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from tfm_core.config import Experiment, to_json
from tfm_core.inspect.speed.report import SpeedReport

if TYPE_CHECKING:
    from tfm_core.inspect.speed.runner import BenchmarkProcess, BenchmarkRunner

_REQUESTED, _RUNNING, _RESULTS = "speed-requested", "speed-running", "speed-results"


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


def request(wanted: BenchmarkRequest) -> None:
    """Request a measurement; it starts as soon as no other one runs."""
    st.session_state[_REQUESTED] = wanted


def requested() -> BenchmarkRequest | None:
    return st.session_state.get(_REQUESTED)


def running() -> BenchmarkProcess | None:
    return st.session_state.get(_RUNNING)


def set_running(measurement: BenchmarkProcess) -> None:
    st.session_state[_RUNNING] = measurement


def keep(report: SpeedReport) -> None:
    done = requested()
    if done is not None:
        _results()[done.key] = report
    forget()


def forget() -> None:
    st.session_state.pop(_REQUESTED, None)
    st.session_state.pop(_RUNNING, None)


def result(wanted: BenchmarkRequest) -> SpeedReport | None:
    return _results().get(wanted.key)


def _results() -> dict[str, SpeedReport]:
    reports: dict[str, SpeedReport] = st.session_state.setdefault(_RESULTS, {})
    return reports
