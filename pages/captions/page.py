"""Pictures to words: compose a picture of digits, and see where the model looks as it writes."""

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
        st.fragment(_compose)(run)  # a move of a digit draws this much only


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
    look = None
    with area:
        try:
            look = None if missing else caption_look.look_at_scene(run, pieces)
        except ValueError as error:
            show.problem(error)
    if look is None:
        with right:
            st.caption(_("The sentence appears once the picture is complete."))
        return
    with right:
        view.sentence(look)
        if look.words:
            chosen = view.heads(run, look)
            view.strip(look, chosen)
            view.word_by_word(look, chosen)
        else:
            st.caption(_("The model wrote no word."))
    with below:
        if look.words:
            view.inside(look, chosen)
    show.code(caption_look.look_at_picture)
    st.caption(_("Weights of step {step}.", step=f"{look.example.step:,}"))


page()
