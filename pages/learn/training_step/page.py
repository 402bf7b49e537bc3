"""One training step, taken apart: batch, loss, gradients, update, and what goes wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from pages.app import show
from pages.app.address import view_link
from pages.app.runs import shown_run
from pages.app.settings import model_choice
from pages.app.settings.model_choice import Chosen
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from pages.learn.training_step import stages, state
from pages.learn.training_step.state import LAST, MAX_STEPS, STAGE, WEIGHTS, ModelAtStep
from tfm_core.inspect.training_step.backward import LOSSES
from tfm_core.plots.chart import chart

if TYPE_CHECKING:
    from tfm_core.training.loop import Trainer

RATES = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 2, 5)), 10.0)


def page() -> None:
    """Choose a model and a rate; show one stage of its next step."""
    show.header("training-step")
    chosen = _pick()
    if chosen is None:
        return
    model_at = state.model_at_step(chosen, is_last=_is_last(chosen))
    try:
        with st.spinner(_("The step …"), show_time=False):
            _status(chosen, model_at)
        rate = _rate(model_at)
        stage = view_link.choice(_("Stage"), STAGE)
        if stage == "batch":
            stages.batch(model_at)
        elif stage == "loss":
            stages.loss(model_at)
        elif stage == "backward":
            stages.backward(model_at)
        elif stage == "update":
            stages.one_weight(model_at, rate)
        elif stage == "after":
            stages.after(model_at, rate)
        elif stage == "ways":
            stages.two_ways(model_at, rate)
        else:
            stages.mistakes(model_at)
        _history(model_at)
    except ValueError as error:
        show.problem(error)


def _pick() -> Chosen | None:
    """Choose the model; return None, with a message, if it cannot be trained."""
    from tfm_core.inspect.training_step.step import example

    small = model_choice.Example("sgd-example", N_("A small translator, plain SGD"), example())
    chosen, facts, _choices = model_choice.line(
        "training-step", shown_run.current_run(), is_trained=True, example=small
    )
    facts.markdown(f"**{escape(chosen.label)}**")
    if chosen.experiment is not None and chosen.experiment.training is None:
        st.info(paragraph("training_step/opened"), icon=":material/folder_open:")
        return None
    if chosen.experiment is None:
        st.info(
            _("A published model has only shapes. Choose another model."),
            icon=":material/straighten:",
        )
        return None
    return chosen


def _is_last(chosen: Chosen) -> bool:
    """Choose the first or the last weights of a run; return whether the last are chosen."""
    if chosen.run is None or not chosen.run.has_checkpoint:
        view_link.forget([WEIGHTS])
        return False
    picked = view_link.choice(
        _("Weights"), WEIGHTS, help=_("Losses and gradients of a finished run are close to 0.")
    )
    return picked == LAST


def _status(chosen: Chosen, model_at: ModelAtStep) -> None:
    """Show which weights these are, and the next step. Raises ValueError."""
    step = state.with_trainer(model_at, lambda trainer: trainer.step)
    upcoming = f"{step + 1:,}"
    if model_at.rates:
        last = state.last_step(model_at)
        words = paragraph(
            "training_step/steps-taken",
            n=len(model_at.rates),
            next=upcoming,
            step=f"{step:,}",
            before=last.loss_before,
            after=last.loss_after,
        )
    elif model_at.checkpoint:
        words = _("A copy of the last checkpoint; next: **step {next}**.", next=upcoming)
    elif chosen.run is not None:
        words = _("The run's first, random weights; next: **step {next}**.", next=upcoming)
    else:
        words = _("The configuration's first weights; next: **step {next}**.", next=upcoming)
    st.markdown(words)


def _rate(model_at: ModelAtStep) -> float:
    """Draw the learning rate and the buttons; return the rate of the next step."""
    left, right = st.columns(2, vertical_alignment="bottom")

    def read(trainer: Trainer) -> tuple[float, bool]:
        from tfm_core.inspect.training_step.step import scheduled_rate

        return scheduled_rate(trainer), trainer.step >= trainer.experiment.trained.steps

    scheduled, is_over = state.with_trainer(model_at, read)
    with left:
        follows = st.toggle(
            _("The schedule's learning rate: {rate}", rate=f"{scheduled:.3g}"),
            value=True,
            key="training-step-follow",
            help=_("The schedule has ended: this is its peak.")
            if is_over
            else _("The rate that training itself would use."),
        )
    with right:
        if not follows:
            picked = st.select_slider(
                _("Learning rate"),
                RATES,
                value=nearest(scheduled),
                format_func=lambda shown_rate: f"{shown_rate:g}",
                key="training-step-rate",
                persist_state="session",
            )
    chosen = scheduled if follows else picked
    with st.container(horizontal=True):
        _buttons(model_at, chosen)
    return chosen


def nearest(rate: float) -> float:
    return min(RATES, key=lambda shown_rate: abs(math.log(shown_rate / max(rate, 1e-9))))


def _buttons(model_at: ModelAtStep, rate: float) -> None:
    n = len(model_at.rates)
    st.button(
        _("Take this step"),
        type="primary",
        icon=":material/skip_next:",
        key="training-step-take",
        on_click=state.push,
        args=(model_at, rate),
        disabled=n >= MAX_STEPS,
        help=_("{n} steps at most.", n=MAX_STEPS) if n >= MAX_STEPS else None,
    )
    st.button(
        _("Undo"),
        icon=":material/undo:",
        key="training-step-undo",
        on_click=state.pop,
        args=(model_at,),
        disabled=not n,
    )
    st.button(
        _("Start over"),
        icon=":material/first_page:",
        key="training-step-clear",
        on_click=state.clear,
        args=(model_at,),
        disabled=n < 2,
    )


def _history(model_at: ModelAtStep) -> None:
    if not model_at.rates:
        return
    before, after = [], []
    for count in range(1, len(model_at.rates) + 1):
        step = state.last_step(replace(model_at, rates=model_at.rates[:count]))
        before.append(step.loss_before)
        after.append(step.loss_after)
    figure = chart(
        LOSSES.table({"step": range(1, len(before) + 1), "before": before, "after": after}),
        x="step",
        y={"before": _("before the step"), "after": _("after it, same batch")},
        across={"dtick": max(1, len(before) // 10)},
        height=280,
    )
    show.figure(figure, _("Each step has its own batch."), key="training-step-history")


page()
