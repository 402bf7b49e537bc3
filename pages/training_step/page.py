"""One training step, taken apart: batch, loss, gradients, update, and what goes wrong."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.training_step import backward, controls, forward, state, update, ways
from pages.training_step.state import STAGE
from pages.ui import show
from pages.ui.address import view_link


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
            forward.batch(model_at)
        elif stage == "loss":
            forward.loss(model_at)
        elif stage == "backward":
            backward.view(model_at)
        elif stage == "update":
            update.one_weight(model_at, rate)
        elif stage == "after":
            update.after(model_at, rate)
        elif stage == "ways":
            ways.two_ways(model_at, rate)
        else:
            ways.mistakes(model_at)
        controls.history(model_at)
    except ValueError as error:
        show.problem(error)


page()
