"""Steps 2 and 4: loss and accuracy of both splits together, without and with augmentation."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.practice import steps
from pages.practice.steps import NAMES, Runs
from pages.ui import show
from pages.ui.model import live_curves
from pages.ui.runs import runs_access
from tfm_core.inspect.practice import lesson
from tfm_core.inspect.practice.lesson import LessonKind
from tfm_core.plots.training.curves import MeasuredCurves, Measurements, learning_curve
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.training.progress import Patience

_WINDOW = 20


def view(runs: Runs) -> None:
    """Train the guided run and mark where it begins to overfit."""
    steps.starter(["plain"], steps.TRAIN_GUIDED, runs)
    if "plain" in runs:
        steps.live(["plain"], runs, _one)


def augmentation(runs: Runs) -> None:
    """Put the run without and the run with augmentation side by side, from one seed."""
    kinds: list[LessonKind] = ["plain", "augmented"]
    show.prose(paragraph("practice/augment", **lesson.AUGMENTATION))
    steps.starter(kinds, N_("Train with augmentation ({time})"), runs)
    if any(kind in runs for kind in kinds):
        steps.live(kinds, runs, _side_by_side)


def curves_of(run: Run, column: str, *, name: str) -> None:
    curves = runs_access.curves(run)
    is_loss = column == "loss"
    figure = learning_curve(
        MeasuredCurves(
            Measurements(_("training"), curves.steps["step"], curves.steps[column]),
            [Measurements(_("validation"), curves.validation["step"], curves.validation[column])],
            best=live_curves.best(curves, column),
        ),
        y_title=_("loss (nats)") if is_loss else _("accuracy"),
        total_steps=run.experiment.training.steps,
        window=_WINDOW,
        is_share=not is_loss,
    )
    if is_loss:
        figure.update_yaxes(range=[0, lesson.TOP_LOSS])
        _mark_turn(figure, curves)
    words = _("Loss; the ring marks the lowest validation loss.")
    if not is_loss:
        words = _("Accuracy. Does it turn with the loss?")
    show.live_figure(figure, words, key=f"practice-{name}-{column}")


def _loss_and_accuracy(run: Run, name: str) -> None:
    for place, column in zip(st.columns(2), ("loss", "accuracy"), strict=True):
        with place:
            curves_of(run, column, name=name)


def _mark_turn(figure: go.Figure, curves: Curves) -> None:
    turn = lesson.overfitting(curves)
    if turn is None or not turn.has_begun:
        return
    figure.add_vrect(
        x0=turn.step,
        x1=turn.last_step,
        fillcolor="rgba(213,94,0,0.10)",
        line_width=0,
        annotation={"text": _("overfitting"), "font": {"size": 11}},
        annotation_position="top right",
    )


def _one(shown: Runs) -> None:
    run = shown["plain"]
    _loss_and_accuracy(run, "plain")
    turn = lesson.overfitting(runs_access.curves(run))
    if turn is None:
        st.caption(_("Waiting for the first measurement."))
    elif turn.has_begun:
        show.prose(
            paragraph(
                "practice/overfitting",
                step=f"{turn.step:,}",
                last=f"{turn.last_step:,}",
                a=turn.train_best,
                b=turn.train_last,
                c=turn.validation_best,
                d=turn.validation_last,
            )
        )
    else:
        st.caption(_("The validation loss still falls: no overfitting yet."))


def _side_by_side(shown: Runs) -> None:
    for column in ("loss", "accuracy"):
        for area, (kind, run) in zip(st.columns(len(shown)), shown.items(), strict=True):
            with area:
                curves_of(run, column, name=kind)
    gaps, can_be_negative = [], False
    for kind, run in shown.items():
        turn = lesson.overfitting(runs_access.curves(run))
        if turn is not None:
            can_be_negative |= kind == "augmented" and turn.gap < 0
            gaps.append(
                _(
                    "{name}: training is **{gap:+.1f} points** ahead of validation.",
                    name=_(NAMES[kind]),
                    gap=100 * turn.gap,
                )
            )
    if gaps:
        st.markdown("  \n".join(gaps))
        words = _("Accuracy at the last step, in percentage points.")
        if can_be_negative:
            words += " " + _("Augmented pictures are harder, so the gap can be negative.")
        st.caption(words)


def early(runs: Runs) -> None:
    show.prose(
        paragraph(
            "practice/patience",
            n=lesson.PATIENCE,
            steps=lesson.PATIENCE * lesson.guided("early").training.validate_every,
        )
    )
    steps.starter(["early"], N_("Train with patience ({time})"), runs)
    if "early" in runs:
        steps.live(["early"], runs, _draw_early)
    show.code(Patience)


def _draw_early(shown: Runs) -> None:
    run = shown["early"]
    _loss_and_accuracy(run, "early")
    curves = runs_access.curves(run)
    best, status = curves.best_validation(), run.status
    if best is None or status.is_active:
        return
    saved = 1 - status.step / status.total_steps if status.total_steps else 0.0
    show.prose(
        paragraph(
            "practice/stopped",
            step=f"{status.step:,}",
            saved=show.percent(saved),
            best=f"{int(curves.unseen['step'][best]):,}",
            accuracy=show.percent(float(curves.unseen["accuracy"][best])),
            last=show.percent(float(curves.unseen["accuracy"][-1])),
        )
    )
