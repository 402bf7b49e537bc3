"""One training step, taken apart: batch, loss, gradients, update, and what goes wrong."""

from __future__ import annotations

import streamlit as st

from pages.ui import (
    linked,
    show,
    training_step_backward,
    training_step_controls,
    training_step_forward,
    training_step_state,
    training_step_update,
    training_step_ways,
)
from pages.ui.words import _

STAGES = {
    "batch": _("Batch and forward"),
    "loss": _("Loss"),
    "backward": _("Backward"),
    "update": _("Update"),
    "after": _("After it"),
    "ways": _("Module or function"),
    "mistakes": _("Famous mistakes"),
}


def page() -> None:
    """Choose a model and a rate; show one stage of its next step."""
    show.header("training_step")
    chosen = training_step_controls.pick()
    if chosen is None:
        return
    place = training_step_state.place_of(chosen)
    try:
        with st.spinner(_("The step …"), show_time=False):
            training_step_controls.where(chosen, place)
        rate = training_step_controls.rate(place)
        stage = linked.choice(_("Stage"), STAGES, key="training-step-stage", query="stage")
        if stage == "batch":
            training_step_forward.batch(place)
        elif stage == "loss":
            training_step_forward.loss(place)
        elif stage == "backward":
            training_step_backward.view(place)
        elif stage == "update":
            training_step_update.one_weight(place, rate)
        elif stage == "after":
            training_step_update.after(place, rate)
        elif stage == "ways":
            training_step_ways.two_ways(place, rate)
        else:
            training_step_ways.mistakes(place)
        training_step_controls.history(place)
    except ValueError as error:
        show.problem(_(str(error)))


page()
