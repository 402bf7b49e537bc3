"""Runs in words: their states, what they learn, how far they came."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui import runs_access, show
from tfm_core.config import FAMILIES
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status


@dataclass(frozen=True, slots=True)
class StateWords:
    """How a state is said: a word, one of Streamlit's badge colours and an icon."""

    label: str
    colour: str
    icon: str


STATES: dict[State, StateWords] = {
    "queued": StateWords(N_("Waiting"), "grey", ":material/hourglass_empty:"),
    "starting": StateWords(N_("Starting"), "blue", ":material/rocket_launch:"),
    "running": StateWords(N_("Training"), "blue", ":material/play_circle:"),
    "paused": StateWords(N_("Paused"), "yellow", ":material/pause_circle:"),
    "finished": StateWords(N_("Finished"), "green", ":material/check_circle:"),
    "stopped": StateWords(N_("Stopped"), "orange", ":material/stop_circle:"),
    "failed": StateWords(N_("Failed"), "red", ":material/error:"),
    "interrupted": StateWords(N_("Interrupted"), "orange", ":material/power_off:"),
}


def badge(status: Status) -> str:
    """Return the state as a Markdown badge."""
    words = STATES[status.state]
    return f":{words.colour}-badge[{words.icon} {_(words.label)}]"


def learns(run: Run) -> str:
    """Return task and model in words, such as ``MNIST · Vision Transformer``."""
    if run.problem:
        return _("damaged")
    experiment = run.experiment
    return f"{_(experiment.task.facts.label)} · {_(FAMILIES[experiment.model.family].label)}"


def progress(status: Status) -> str:
    """Return the steps done of all, such as ``350 / 1,000 steps``."""
    if status.state == "queued" and status.queue_position:
        return _("number {n} in line").format(n=status.queue_position)
    total = status.total_steps
    steps = show.count(status.step) if status.step == total else f"{status.step:,} / {total:,}"
    return _("{steps} steps").format(steps=steps)


def accuracy(run: Run) -> tuple[float, str] | None:
    """Return the newest accuracy on unseen examples and where it was measured, or None."""
    curves = runs_access.curves(run)
    for series, words in ((curves.test, _("test")), (curves.validation, _("validation"))):
        value = series.last("accuracy")
        if value is not None:
            return value, words
    return None
