"""Pictures to words: compose a picture and see where the model looks for each word."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from pages.captions import scene, view
from pages.i18n import _
from pages.ui import show
from pages.ui.accounts import visitors
from pages.ui.fact_line import fact_line
from pages.ui.model import question
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, run_words, shown_run
from pages.ui.typed import escape
from tfm_core.config import CaptionTaskConfig
from tfm_core.inspect.questions import Question
from tfm_core.inspect.text import caption_look, questions
from tfm_core.inspect.text.caption_look import CaptionReading, Piece
from tfm_core.runs.run import Run
from tfm_core.variants.languages import LANGUAGES

_TRAINED = {"english": "captions", "korean": "captions-korean"}  # the preset of each language


def page() -> None:
    show.header("captions")
    run = pick()
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


def pick() -> Run | None:
    runs = shown_run.runs_with_weights(lambda experiment: experiment.task.describes_pictures)
    if not runs:
        _none()
        return None
    facts, choices = fact_line("captions")
    with choices:
        picked = shown_run.choose_run(
            _("Model"),
            runs,
            key="captions-run",
            describe=lambda run: f"{run_words.name(run)} · {_learned(run)}",
            about=_("Runs with saved weights."),
        )
        _other_language(runs)
        shown_run.recorded_note(picked, key="captions")
    step = _("step {step}", step=f"{picked.status.step:,}")
    facts.caption(shown_run.facts_of(picked, _learned(picked), step))
    return picked


def _learned(run: Run) -> str:
    task = run.experiment.task_as(CaptionTaskConfig)
    language = _(LANGUAGES[task.language].label)
    return _("{language}, {n} digits", language=language, n=task.n_digits)


def _other_language(runs: list[Run]) -> None:
    spoken = {run.experiment.task_as(CaptionTaskConfig).language for run in runs}
    for language, preset in _TRAINED.items():
        if language not in spoken:
            st.button(
                _("Train one in {language}", language=_(LANGUAGES[language].label)),
                key=f"captions-train-{language}",
                icon=":material/play_arrow:",
                on_click=run_actions.start_preset,
                args=(preset,),
            )


def _none() -> None:
    for run in visitors.at_hand():
        if run.problem is None and run.experiment.task.describes_pictures and run.status.is_active:
            words = _("“{name}” has not saved weights yet.", name=escape(run.meta.name))
            st.info(words, icon=":material/hourglass_empty:")
            st.page_link(
                page_table.path_of("train"),
                label=_("Watch"),
                query_params={"run": run.id, **run_actions.way_back()},
            )
            return
    shown_run.preset_buttons(
        _("No model here describes pictures yet."),
        list(_TRAINED.values()),
        key="captions-start",
    )


page()
