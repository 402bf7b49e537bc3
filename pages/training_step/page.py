"""One training step, taken apart: batch, loss, gradients, update, and what goes wrong."""

from __future__ import annotations

import streamlit as st

from pages.i18n import N_, _
from pages.training_step import backward, controls, forward, state, update, ways
from pages.ui import show, url_choice

STAGES = {
    "batch": N_("Batch and forward"),
    "loss": N_("Loss"),
    "backward": N_("Backward"),
    "update": N_("Update"),
    "after": N_("After it"),
    "ways": N_("Module or function"),
    "mistakes": N_("Famous mistakes"),
}


def page() -> None:
    """Choose a model and a rate; show one stage of its next step."""
    show.header("training_step")
    chosen = controls.pick()
    if chosen is None:
        return
    place = state.place_of(chosen)
    try:
        with st.spinner(_("The step …"), show_time=False):
            controls.where(chosen, place)
        rate = controls.rate(place)
        stage = url_choice.choice(_("Stage"), STAGES, key="training-step-stage", query="stage")
        if stage == "batch":
            forward.batch(place)
        elif stage == "loss":
            forward.loss(place)
        elif stage == "backward":
            backward.view(place)
        elif stage == "update":
            update.one_weight(place, rate)
        elif stage == "after":
            update.after(place, rate)
        elif stage == "ways":
            ways.two_ways(place, rate)
        else:
            ways.mistakes(place)
        controls.history(place)
    except ValueError as error:
        show.problem(error)


page()
