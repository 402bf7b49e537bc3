"""Runs in words, badges and a small curve: their state, task, result, symptoms."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st

from pages.app import show
from pages.app.lessons import open_lesson
from pages.app.runs import runs_access
from pages.app.settings.fields import settings_by_path
from pages.i18n import N_, _
from tfm_core.choices.config import FAMILIES, ForeignModelConfig
from tfm_core.choices.config.experiment import possible
from tfm_core.facts.storage import HALF, attention_numbers
from tfm_core.inspect.differences import change_text
from tfm_core.plots.described import line
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.plots.training.curves import smooth
from tfm_core.probe.types import Probe
from tfm_core.runs.figures import last_measured
from tfm_core.runs.outcome import Outcome, OutcomeKind
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status
from tfm_core.sentences import Sentence, joined
from tfm_core.studies.symptoms import Symptom, SymptomKind, of_run


@dataclass(frozen=True, slots=True)
class StateWords:
    """How a state is shown: label, badge colour and icon."""

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
    "opened": StateWords(N_("Opened"), "violet", ":material/folder_open:"),
}


OUTCOMES: dict[OutcomeKind, StateWords] = {
    "diverged": StateWords(N_("Diverged"), "red", ":material/trending_up:"),
    "at-chance": StateWords(N_("Did not learn"), "orange", ":material/trending_flat:"),
    "overfits": StateWords(N_("Overfitted"), "orange", ":material/menu_book:"),
}
"""Said in place of the state where a run came to its end and learned nothing that helps."""


def state_words(status: Status, outcome: Outcome | None = None) -> StateWords:
    """Return how a state, or the outcome in its place, is shown."""
    return STATES[status.state] if outcome is None else OUTCOMES[outcome.kind]


def badge(status: Status, outcome: Outcome | None = None) -> str:
    """Return the state or the outcome as a Markdown badge."""
    words = state_words(status, outcome)
    return f":{words.colour}-badge[{words.icon} {_(words.label)}]"


def badge_of(run: Run) -> str:
    """Return the badge of a run, which says so where its files are damaged."""
    if run.problem is not None:
        return f":red-badge[:material/broken_image: {_('Damaged')}]"
    return badge(run.status, run.outcome)


def learns(run: Run) -> str:
    """Return task and model in words, such as ``MNIST · Vision Transformer``."""
    if run.problem:
        return _("damaged")
    return f"{_(run.experiment.task.facts.label)} · {model(run)}"


def model(run: Run) -> str:
    """Return what the model of a run is called: its family, of somebody else's code its class."""
    config = run.experiment.model
    return (
        config.class_name
        if isinstance(config, ForeignModelConfig)
        else _(FAMILIES[config.family].label)
    )


def progress(status: Status) -> str:
    """Return the steps done of all, such as ``350 / 1,000 steps``."""
    if status.state == "queued" and status.queue_position:
        return _("number {n} in the queue", n=status.queue_position)
    if status.state == "opened":
        return _("not trained here")
    total = status.total_steps
    steps = show.count(status.step) if status.step == total else f"{status.step:,} / {total:,}"
    return _("{steps} steps", steps=steps)


def reached(run: Run) -> Status:
    """Return the status of a run at its newest recorded step.

    A worker that was killed had recorded more steps than its last status says.
    """
    status = run.status
    newest = int(runs_access.curves(run).steps.last("step") or 0)
    return status if newest <= status.step else dataclasses.replace(status, step=newest)


def result(run: Run) -> str:
    """Return the newest accuracy on unseen examples in words, or "".

    Such as ``98.2% of tokens, 95.0% of sequences right (test)``.
    """
    measured = _measured(run)
    if measured is None:
        return ""
    series, where = measured
    share, whole = show.percent(series["accuracy"]), series["sequence_accuracy"]
    answer = run.experiment.task.facts.answer
    if answer in ("sequence", "blanks") and math.isfinite(whole):
        return _(
            "{share} of tokens, {whole} of sequences right ({where})",
            share=share,
            whole=show.percent(whole),
            where=where,
        )
    if answer in ("sequence", "blanks", "text"):
        return _("{share} of tokens right ({where})", share=share, where=where)
    return _("{share} right ({where})", share=share, where=where)


def ended(run: Run) -> str:
    """Return how a run ended: state or outcome, last step, why or how well; "" until it has."""
    status = run.status
    if status.is_active or status.state == "opened":
        return ""
    words = state_words(status, run.outcome)
    how = N_("{state} at step {step}.", state=words.label, step=f"{status.step:,}")
    why = result(run) if status.state == "finished" else reason(run)
    return _(joined(how, *filter(None, [why])))


def reason(run: Run) -> str | None:
    """Return why a run ended or is no success; never a rate that the open lesson asks for."""
    status, outcome = run.status, run.outcome
    if outcome is None:
        return status.reason
    if outcome.kind == "diverged" and open_lesson.asks_for("training.learning_rate"):
        return N_("The loss became infinite or NaN.") if status.state == "failed" else None
    return outcome.sentence


def success(run: Run) -> float | None:
    """Return the accuracy to compare runs by: of whole sequences if counted."""
    measured = _measured(run)
    if measured is None:
        return None
    series, _where = measured
    whole = series["sequence_accuracy"]
    return whole if math.isfinite(whole) else series["accuracy"]


def loss(run: Run) -> float | None:
    measured = _measured(run)
    return None if measured is None else measured[0]["loss"]


def _measured(run: Run) -> tuple[dict[str, float], str] | None:
    """Return the last measurement on unseen examples, and its split."""
    measured = last_measured(run)
    if measured is None:
        return None
    values = {name: measured.get(name) for name in ("accuracy", "sequence_accuracy", "loss")}
    split = _("test") if measured["split"] == "test" else _("validation")
    return {name: math.nan if value is None else value for name, value in values.items()}, split


def name(run: Run) -> str:
    """Return the name of a run; that of a recorded one is a sentence of the app."""
    return _(run.meta.name) if isinstance(run.meta.name, Sentence) else run.meta.name


def attended_caption(run: Run, probe: Probe) -> None:
    """Show why some examples have no maps, if so."""
    n = len(probe.attended)
    if n == len(probe.items):
        return
    numbers = attention_numbers(run.experiment)
    st.caption(
        _(
            "Only {n} of {all} examples have saved maps; "
            "one example takes {numbers} weights ({size}) per snapshot.",
            n=n,
            all=len(probe.items),
            numbers=show.count(numbers),
            size=show.size(HALF * numbers),
        )
    )


_SYMPTOM_MARKS: dict[SymptomKind, str] = {
    "diverged": N_("diverges"),
    "exploding": N_("gradients explode"),
    "vanishing": N_("gradients vanish"),
    "dead-heads": N_("dead heads"),
    "overfits": N_("overfits"),
}
"""What is written on the curve at the step where a symptom began, where there is such a step."""


def symptoms(run: Run) -> tuple[Symptom, ...] | None:
    """Return what is wrong with a run, worst first; None if it cannot be judged yet."""
    status = run.status
    if status.state in ("queued", "starting"):
        return None
    curves = runs_access.curves(run)
    steps = tuple(run.snapshot_steps())
    size = (len(curves.steps), len(curves.validation), curves.steps.last("step"))
    changed = [0, 0]
    for i, which in enumerate(("last", "best")):
        with suppress(OSError):
            changed[i] = (run.folder / "checkpoints" / which).stat().st_mtime_ns
    return _symptoms(run.folder, status.state, status.reason, steps, (*size, *changed))


def symptom_marks(run: Run) -> list[tuple[int, str]]:
    """Return the steps to mark on a run's curves, with labels."""
    marked = [symptom for symptom in symptoms(run) or () if symptom.kind in _SYMPTOM_MARKS]
    series = runs_access.curves(run).steps
    lost = [(int(step), _("NaN")) for step in series["step"][np.isnan(series["loss"])][:1]]
    return [*lost, *((symptom.step, _(_SYMPTOM_MARKS[symptom.kind])) for symptom in marked)]


def turn_marks(run: Run) -> list[tuple[int, str]]:
    """Return the steps at which a setting was changed while the run trained, with its new value."""
    turns = possible(run.experiment, runs_access.curves(run).turns)
    labels = (
        settings_by_path(run.experiment.model.family, run.experiment.task.name) if turns else {}
    )
    return [(turn.step, f"{_(labels[turn.setting].label)} {turn.value:g}") for turn in turns]


@lru_cache(maxsize=256)
def _symptoms(
    folder: Path, state: str, reason: str | None, steps: tuple[int, ...], _size: tuple[object, ...]
) -> tuple[Symptom, ...] | None:
    run = Run(folder)
    return of_run(run, runs_access.curves(run), steps)


WIDTH = 96
HEIGHT = 40
POINTS = 80
_INSET = 5  # pictures have round corners, and the dot needs room


def sparkline_name(run: Run) -> str:
    """Return the ends and the extremes of a run's training accuracy in words."""
    steps = runs_access.curves(run).steps
    return _(line(N_("Training accuracy"), steps["step"], steps["accuracy"], is_share=True))


def sparkline(run: Run) -> None:
    """Draw the training accuracy of a run, 0 to 100%, as a small curve."""
    picture = base64.b64encode(sparkline_svg(run).encode()).decode()
    address, name = f"data:image/svg+xml;base64,{picture}", escape(sparkline_name(run))
    st.html(  # st.image would add a full-screen button
        f'<img class="sparkline" src="{address}" alt="{name}" width="{WIDTH}">', width="content"
    )


def sparkline_svg(run: Run) -> str:
    """Return the curve as SVG. The x axis is the whole run, so a young run has a short line."""
    steps = runs_access.curves(run).steps
    total = max(run.status.total_steps, 1)
    x, y = steps["step"], steps["accuracy"]
    finite = np.isfinite(y)
    x, y = x[finite], y[finite]
    left, right, top, bottom = _INSET, WIDTH - _INSET, _INSET, HEIGHT - _INSET
    rows = [
        f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="{GREY}" '
        'stroke-opacity="0.4"/>'
    ]
    if len(x):
        # the mean over a fiftieth of the run before each point
        y = smooth(y, len(y) // 50)
        keep = np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))
        across = np.clip(x[keep] / total, 0, 1) * (right - left) + left
        up = bottom - np.clip(y[keep], 0, 1) * (bottom - top)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
        colour = COLOURS["train"]
        rows.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        rows.append(f'<circle cx="{across[-1]:.1f}" cy="{up[-1]:.1f}" r="2.5" fill="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(rows)}</svg>'
    )


def unique_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return a unique name per run: the browser identifies options by it.

    Names are stable: the oldest run of a name has name and seed, later ones also their difference.
    """
    names: dict[str, str] = {}
    oldest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.meta.created):
        called = name(run)
        if not run.meta.recorded and run.problem is None:
            first = oldest.setdefault(called, run).experiment
            what = change_text(first, run.experiment.replace(seed=first.seed))
            called = _(
                "{name} · seed {seed}",
                name=f"{called} · {_(what)}" if what else called,
                seed=run.experiment.seed,
            )
        names[run.id] = f"{called} · {run.id[:5]}" if called in names.values() else called
    return names
