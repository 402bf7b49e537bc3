"""Pictures to words: compose a picture and see where the model looks for each word."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from pages.captions import run as captions_run
from pages.captions import scene, view
from pages.i18n import _
from pages.ui import show
from pages.ui.model import question
from tfm_core.inspect.questions import Question
from tfm_core.inspect.text import caption_look, questions
from tfm_core.inspect.text.caption_look import CaptionReading, Piece
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
            view.picture(pieces, *caption_look.preview(pieces))
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
            view.strip(reading, *chosen)
            view.word_by_word(reading)
        else:
            st.caption(_("The model wrote no word."))
    with below:
        if reading.words:
            view.inside(reading, *chosen)
            _check(run, pieces, reading)
    show.code(caption_look.look_at_picture)
    st.caption(_("Weights of step {step}.", step=f"{reading.example.step:,}"))


def _check(run: Run, pieces: list[Piece], reading: CaptionReading) -> None:
    """Ask what the model writes once two digits change places, and how many keys a word has."""
    asked: dict[str, Question | None] = {"patches": questions.about_patches(reading)}
    if len(pieces) > 1:
        with suppress(ValueError):  # of two sizes they may overlap then
            swapped = caption_look.look_at_scene(run, caption_look.exchanged(pieces))
            asked = {"swap": questions.about_swap(reading, swapped), **asked}
    scene = [(piece.placed, hash(piece.pixels.tobytes())) for piece in pieces]
    question.check(asked, of=f"{run.id} {reading.example.step} {scene}")


page()
