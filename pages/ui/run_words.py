"""Runs in words: their states, what they learn, how far they came."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui import show
from tfm_core.config import FAMILIES
from tfm_core.runs.record.figures import last_measured
from tfm_core.runs.record.outcome import Outcome, OutcomeKind
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


OUTCOMES: dict[OutcomeKind, StateWords] = {
    "diverged": StateWords(N_("Diverged"), "red", ":material/trending_up:"),
    "never-learned": StateWords(N_("Did not learn"), "orange", ":material/trending_flat:"),
    "by-heart": StateWords(N_("Learned by heart"), "orange", ":material/menu_book:"),
}
"""Said in place of the state where a run came to its end and learned nothing that helps."""


def said(status: Status, outcome: Outcome | None = None) -> StateWords:
    """Return how a state is said, or in its place how the training came out."""
    return STATES[status.state] if outcome is None else OUTCOMES[outcome.kind]


def badge(status: Status, outcome: Outcome | None = None) -> str:
    """Return the state, or how the training came out, as a Markdown badge."""
    words = said(status, outcome)
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
        return _("number {n} in the queue", n=status.queue_position)
    total = status.total_steps
    steps = show.count(status.step) if status.step == total else f"{status.step:,} / {total:,}"
    return _("{steps} steps", steps=steps)


def result(run: Run) -> str:
    """Return the newest accuracy on unseen examples as what it is, "" where there is none.

    Such as ``98.2 % of tokens, 95.0 % of whole sequences right (test)``.
    """
    found = _measured(run)
    if found is None:
        return ""
    series, where = found
    share, whole = show.percent(series["accuracy"]), series["sequence_accuracy"]
    answer = run.experiment.task.facts.answer
    if answer in ("sequence", "blanks") and math.isfinite(whole):
        words = _("{share} of tokens, {whole} of whole sequences right ({where})")
        return words.format(share=share, whole=show.percent(whole), where=where)
    words = _("{share} right ({where})")
    if answer in ("sequence", "blanks", "text"):
        words = _("{share} of tokens right ({where})")
    return words.format(share=share, where=where)


def success(run: Run) -> float | None:
    """Return the share to compare runs by: of whole sequences where they are counted."""
    found = _measured(run)
    if found is None:
        return None
    series, _where = found
    whole = series["sequence_accuracy"]
    return whole if math.isfinite(whole) else series["accuracy"]


def loss(run: Run) -> float | None:
    """Return the newest loss on unseen examples, or None."""
    found = _measured(run)
    return None if found is None else found[0]["loss"]


def _measured(run: Run) -> tuple[dict[str, float], str] | None:
    """Return what was measured last on unseen examples, and on which of them."""
    found = last_measured(run)
    if found is None:
        return None
    values = {name: found.get(name) for name in ("accuracy", "sequence_accuracy", "loss")}
    return {name: math.nan if value is None else value for name, value in values.items()}, _(
        "test"
    ) if found["split"] == "test" else _("validation")
