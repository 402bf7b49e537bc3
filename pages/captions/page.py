"""Pictures to words: compose a picture and see where the model looks for each word."""

from __future__ import annotations

import streamlit as st

from pages.captions import run as captions_run
from pages.captions import scene, view
from pages.i18n import _
from pages.ui import show
from tfm_core.inspect.text import caption_look
from tfm_core.runs.run import Run


def page() -> None:
    show.header("captions")
    run = captions_run.pick()
    if run is not None:
        st.fragment(_compose)(run)  # moving a digit redraws only this part


def _compose(run: Run) -> None:
    left, right = st.columns([5, 7], gap="large")
    with left:
        area = st.container()
        pieces, missing = scene.pieces(run)
        below = st.container()
        with area:
            view.picture(pieces, caption_look.preview(pieces))
            for hint in missing:
                st.caption(hint)
    reading = None
    with area:
        try:
            reading = None if missing else caption_look.look_at_scene(run, pieces)
        except ValueError as error:
            show.problem(error)
    if reading is None:
        with right:
            st.caption(_("Complete the picture first."))
        return
    with right:
        view.sentence(reading)
        if reading.words:
            chosen = view.heads(run, reading)
            view.strip(reading, chosen)
            view.word_by_word(reading, chosen)
        else:
            st.caption(_("The model wrote no word."))
    with below:
        if reading.words:
            view.inside(reading, chosen)
    show.code(caption_look.look_at_picture)
    st.caption(_("Weights of step {step}.", step=f"{reading.example.step:,}"))


page()
