"""The learning curves of a run as live figures: loss and accuracy, side by side."""

from __future__ import annotations

from functools import partial

import plotly.graph_objects as go
import streamlit as st

from pages.i18n import _, language
from pages.ui import show
from pages.ui.runs import run_words, runs_access
from tfm_core.config.own_tasks import OwnTextTaskFacts
from tfm_core.config.text_tasks import TextTaskFacts
from tfm_core.plots.of_run import is_in_nats
from tfm_core.plots.training.curves import (
    MeasuredCurves,
    Measurements,
    ReferenceLine,
    learning_curve,
)
from tfm_core.runs.curves import Curves, Series
from tfm_core.runs.run import Run

WINDOWS = (1, 5, 10, 20, 50, 100, 200)
_WINDOW, _LOG = "curves-window", "curves-log"
_ROOM = 0.1  # of the figure's height, for a line of words


def part(run: Run) -> None:
    curves = runs_access.curves(run)
    window = st.session_state.get(_WINDOW, 10)
    is_log = bool(st.session_state.get(_LOG, False))
    loss, accuracy = _figures(_key(run, curves), window, is_log, language(), run, curves)
    left, right = st.columns(2)
    with left:
        show.live_figure(
            loss,
            _("Should fall below guessing. Validation far above training: overfitting.")
            if is_in_nats(run, curves)
            else _("Validation far above training: overfitting."),
            key=f"loss-{run.id}",
        )
    facts = run.experiment.task.facts
    if getattr(facts, "hides", False):
        caption = _("Share of right words. Several may fit a gap, so even a perfect reader errs.")
    elif facts.answer in ("sequence", "blanks"):
        caption = _("Share of right tokens, and of sequences without an error.")
    elif facts.answer == "text":
        caption = _(
            "Share of next tokens predicted. It stays below 1: texts continue in many ways."
        )
    else:
        caption = _("Share of right examples.")
    with right:
        show.live_figure(accuracy, caption, key=f"accuracy-{run.id}")
    _controls()


def _controls() -> None:
    if st.session_state.get(_WINDOW) not in WINDOWS:
        st.session_state[_WINDOW] = 10
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.select_slider(
            _("Smoothing"),
            WINDOWS,
            key=_WINDOW,
            width=320,
            format_func=lambda n: _("off") if n == 1 else _("mean of {n} batches", n=n),
            help=_("Averages this many past batches."),
            persist_state="session",
        )
        st.toggle(
            _("Logarithmic steps"),
            key=_LOG,
            help=_("Stretches the start."),
            persist_state="session",
        )


def _key(run: Run, curves: Curves) -> tuple[object, ...]:
    """Return a cache key that changes exactly when a figure would."""
    sizes = [
        (len(series), series.last("step"))
        for series in (curves.steps, curves.validation, curves.averaged, curves.test)
    ]
    return (run.id, *sizes, len(curves.resumed), len(curves.turns), bool(curves.started))


@st.cache_resource(show_spinner=False, max_entries=64)
def _figures(
    key: tuple[object, ...], window: int, is_log: bool, spoken: str, _run: Run, _curves: Curves
) -> tuple[go.Figure, go.Figure]:
    started = _curves.started
    total = int(started.get("total_steps") or _run.status.total_steps or 1)
    curve = partial(learning_curve, total_steps=total, window=window, is_log=is_log)
    is_patient = _run.experiment.training.patience > 0
    turns = run_words.turn_marks(_run)
    loss = curve(
        MeasuredCurves(
            _train(_curves, "loss"),
            [_measured(_("validation"), _curves.validation, "loss")],
            [_measured(_("test"), _curves.test, "loss")],
            [_measured(_("averaged weights"), _curves.averaged, "loss")],
            best(_curves, "loss") if is_patient else None,
            turns,
        ),
        y_title=_("loss (nats)") if is_in_nats(_run, _curves) else _("loss"),
        marks=_loss_marks(started, is_smoothed=_is_floor_smoothed(_run)),
    )
    columns = [("accuracy", _("validation"), _("averaged weights"))]
    if _run.experiment.task.facts.answer in ("sequence", "blanks"):
        columns.append(("sequence_accuracy", _("whole sequences"), _("averaged, whole sequences")))
    accuracy = curve(
        MeasuredCurves(
            _train(_curves, "accuracy"),
            [_measured(name, _curves.validation, column) for column, name, _averaged in columns],
            [_measured(_("test"), _curves.test, "accuracy")],
            [_measured(name, _curves.averaged, column) for column, _last, name in columns],
            best(_curves, "accuracy") if is_patient else None,
            turns,
        ),
        y_title=_("accuracy"),
        marks=_chance_marks(started),
        is_share=True,
    )
    for figure in (loss, accuracy):
        figure.update_layout(uirevision="log" if is_log else "linear")
    return loss, accuracy


def _train(curves: Curves, column: str) -> Measurements:
    return Measurements(_("training"), curves.steps["step"], curves.steps[column])


def _measured(name: str, series: Series, column: str) -> Measurements:
    return Measurements(name, series["step"], series[column])


def best(curves: Curves, column: str) -> Measurements | None:
    """Return the validation with the lowest loss after step 0, as a series of one point."""
    index = curves.best_validation()
    if index is None:
        return None
    row = slice(index, index + 1)
    steps = curves.unseen["step"][row]
    name = _("best: step {n}", n=f"{int(steps[0]):,}")
    return Measurements(name, steps, curves.unseen[column][row])


def marks(run: Run, curves: Curves) -> tuple[list[ReferenceLine], list[ReferenceLine]]:
    """Return the reference levels of loss and of accuracy."""
    is_smoothed = _is_floor_smoothed(run)
    return _loss_marks(curves.started, is_smoothed=is_smoothed), _chance_marks(curves.started)


def _is_floor_smoothed(run: Run) -> bool:
    """Return whether the lowest loss is that of smoothed targets, used only in training.

    Hidden words have the loss of a perfect reader, whatever training smooths.
    """
    facts = run.experiment.task.facts
    is_smoothed = run.experiment.training.label_smoothing > 0
    return is_smoothed and isinstance(facts, TextTaskFacts | OwnTextTaskFacts) and not facts.hides


def _loss_marks(started: dict[str, object], *, is_smoothed: bool = False) -> list[ReferenceLine]:
    lines = []
    start, floor = started.get("start_loss"), started.get("floor")
    if isinstance(start, float):
        lines.append(ReferenceLine(start, _("guessing: {x}", x=f"{start:.2f}")))
    if isinstance(floor, int | float) and floor > 0:
        x = f"{floor:.2f}"
        words = _("lowest possible: {x}", x=x)
        if is_smoothed:  # validation and test are not smoothed, and go lower
            words = _("lowest possible in training, smoothed: {x}", x=x)
        # close above 0 there is no room for words below the line
        has_room = not isinstance(start, float) or floor > start * _ROOM
        lines.append(ReferenceLine(float(floor), words, is_lower_bound=has_room))
    return lines


def _chance_marks(started: dict[str, object]) -> list[ReferenceLine]:
    chance, ceiling = started.get("chance"), started.get("ceiling")
    lines = []
    if isinstance(chance, float):
        lines.append(ReferenceLine(chance, _("guessing: {x}", x=show.percent(chance))))
    if isinstance(ceiling, float):
        words = _("a perfect reader: {x}", x=show.percent(ceiling))
        lines.append(ReferenceLine(ceiling, words))
    return lines
