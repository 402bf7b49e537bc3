"""One training step, taken apart: batch, loss, gradients, update, and what goes wrong."""

from __future__ import annotations

import streamlit as st

from pages.app import show
from pages.app.address import view_link
from pages.i18n import _
from pages.learn.training_step import controls, stages, state
from pages.learn.training_step.state import STAGE


def page() -> None:
    """Choose a model and a rate; show one stage of its next step."""
    show.header("training-step")
    chosen = controls.pick()
    if chosen is None:
        return
    model_at = state.model_at_step(chosen, is_last=controls.is_last(chosen))
    try:
        with st.spinner(_("The step …"), show_time=False):
            controls.status(chosen, model_at)
        rate = controls.rate(model_at)
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
        controls.history(model_at)
    except ValueError as error:
        show.problem(error)


page()
