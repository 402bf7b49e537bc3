"""The first screen of Home: a recorded translator, the next steps, a board that reads a digit."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import streamlit as st

from pages.app import show
from pages.app.lessons import bar
from pages.app.model.digit_models import answer, board, reading_or_note, samples
from pages.app.model.stage_view import prepare, stage
from pages.app.navigation import ticks
from pages.app.navigation.page_table import WAY
from pages.app.runs import run_time, runs_access, shown_run
from pages.components.digits import DIGITS as DIGIT_NAMES
from pages.components.digits import Picture, Reading, current_drawing, digit_reader
from pages.i18n import N_, _
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention.example import read_picture
from tfm_core.inspect.attention.pictures import answers_by_step, right_since
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

TRANSLATOR, DIGITS = "recorded-korean", "recorded-digits"
FIRST = 3
"""The sample shown at the first visit."""
LOOK_AGAIN = 1.5
"""Seconds until the model starts loading, and between polls for it: both would slow down the first
paint of Home.
"""
KEY = "home-digit"
PRESET = "translate"
"""The preset of the main button: heads form within seconds."""


def film() -> None:
    """Play the recorded translator, if it is there."""
    run = _recorded(TRANSLATOR)
    if run is None:
        return
    with st.container(key="home-translation"):
        st.header(_("Recording: a model learns English to Korean"), anchor=False)
        stage(run, key="home-stage", plays=True)


@dataclass(frozen=True, slots=True)
class Door:
    """A link to a page: its label in Markdown and its query."""

    page: str
    label: str
    icon: str
    query: dict[str, str] = field(default_factory=dict)


DOORS = (
    Door(
        "train",
        N_("**Watch** every head and curve of it"),
        ":material/visibility:",
        {"run": TRANSLATOR},
    ),
    Door(
        "attention",
        N_("**Try** your own sentence"),
        ":material/edit:",
        {"run": TRANSLATOR, "example": "own"},
    ),
    Door("numbers", N_("**Learn** step by step"), ":material/school:"),
)


def doors() -> None:
    """Draw the next steps as one row, the training first."""
    with st.container(key="doors", horizontal=True, vertical_alignment="center", gap="medium"):
        with st.container(width="content"):
            st.fragment(_train_button)()  # a press redraws only this part
        bar.start("translate", _("**Take the tour**"))
        bar.resume()
        for door in DOORS:
            page = ticks.upcoming().name if door.page == WAY[0].name else door.page
            show.link(page, _(door.label), door.query, icon=door.icon)


def _train_button() -> None:
    name, time = _(PRESETS[PRESET].label), run_time.takes_now(PRESETS[PRESET].experiment)
    shown_run.preset_button(
        PRESET,
        key="begin",
        label=_("Train it yourself ({time})", time=shown_run.preset_time(PRESET)),
        help=_("“{name}” from random weights: {time}.", name=name, time=time),
        is_first=True,
    )


def digit() -> None:
    """Show the board whose digit a recorded model reads, if it is there."""
    run = _recorded(DIGITS)
    if run is None or not run.weight_steps():
        return
    with st.container(key="home-own-digit", width=720):
        with st.container(horizontal=True, vertical_alignment="top", gap="small"):
            st.header(_("Draw a digit"), anchor=False, width="content")
            bar.start("digit", _("Tour: six stops"))
        board(run, partial(_answer, run), look_again=LOOK_AGAIN)


def warm() -> None:
    translator = _recorded(TRANSLATOR)
    if translator is not None:
        prepare(translator)


def _recorded(run_id: str) -> Run | None:
    with suppress(RunNotFound):
        return runs_access.store().get(run_id)
    return None


def read(run: Run, picture: Picture) -> Reading:
    """Return what each saved step reads in a picture (H, W). Raises ValueError."""
    given, _notes = read_picture(run, picture)
    steps, shares = found = answers_by_step(run, given)
    since = right_since(found, int(shares[-1].argmax()))
    assert since is not None
    said = answer(found, DIGIT_NAMES, "{:,}".format)
    return Reading(steps, shares, steps.index(since), said)


def _answer(run: Run, is_ready: bool) -> None:
    shown, pictures = current_drawing(KEY, first=FIRST), samples(run)
    picture = shown.picture(pictures)
    reading, note = reading_or_note(picture, partial(read, run), is_ready=is_ready)
    digit_reader(shown, reading, samples=pictures, note=note, key=KEY)
