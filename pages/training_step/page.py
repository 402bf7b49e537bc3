"""One training step, taken apart: batch, loss, gradients, update, and what goes wrong."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.training_step import backward, controls, forward, state, update, ways
from pages.training_step.link import STAGE
from pages.ui import show, view_link


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
        stage = view_link.choice(_("Stage"), STAGE)
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
        show.problem(_(str(error)))


page()
