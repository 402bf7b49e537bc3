"""A digit of one's own: what a recorded training reads in it, and from which step on."""

from __future__ import annotations

import streamlit as st

from pages.components.digit_reader import Picture, Reading, digit_reader, drawn
from pages.i18n import _
from pages.ui import show, state
from pages.ui.digit_models import models, samples
from tfm_core.inspect.attention.own_example import read_picture
from tfm_core.inspect.progress.pictures import answers_by_step, right_since
from tfm_core.runs.run import Run

FIRST = 3
"""The sample that stands on the board at the first visit."""
LOOK_AGAIN = 1.5
"""Seconds until the model begins to be loaded, and between two looks whether it is there: loading
torch, and each look, would slow down what the browser still draws of a Home that was just opened.
"""
SURE = 0.5
"""The probability below which the model is said to be unsure."""
KEY = "home-digit"


def own_digit(run: Run) -> None:
    """Ask for a digit and show what the run reads in it; a stroke draws this part anew alone."""
    found = models(str(run.folder), run)
    were_loaded, is_drawn = found.are_loaded, False

    def part() -> None:
        nonlocal is_drawn
        if found.are_loaded and not were_loaded:
            state.draw_anew()
        if is_drawn and not were_loaded:
            found.load()
        is_drawn = True
        _answer(run, is_ready=were_loaded)

    st.fragment(part, run_every=None if were_loaded else LOOK_AGAIN)()


def read(run: Run, picture: Picture) -> Reading:
    """Return what the run read in a drawing or a picture (H, W), with the weights of each time.

    Raises ValueError, in a sentence.
    """
    given, _notes = read_picture(run, picture)
    steps, shares = found = answers_by_step(run, given)
    digit = int(shares[-1].argmax())
    since = right_since(found, digit)
    assert since is not None
    return Reading(steps, shares, steps.index(since), said(digit, shares[-1, digit], since, steps))


def said(digit: int, share: float, since: int, steps: tuple[int, ...]) -> str:
    """Say which digit the last weights read, how surely, and from which step on."""
    if share < SURE:
        words = _("It is not sure: perhaps a {digit}, with {share}.")
    elif since == steps[0]:
        words = _("It reads a {digit}, but so do random weights: luck.")
    else:
        words = _("From step {step} on it reads a {digit}.")
    return words.format(digit=digit, share=show.percent(share), step=f"{since:,}")


def _answer(run: Run, *, is_ready: bool) -> None:
    shown, pictures = drawn(KEY, first=FIRST), samples(run)
    picture, reading = shown.picture(pictures), None
    note = _("Draw a digit: the bars answer at every stroke.")
    if not is_ready:
        note = _("Loading the model …")
    elif picture is not None:
        try:
            reading = read(run, picture)
        except ValueError as error:
            note = _(error)
    digit_reader(shown, reading, samples=pictures, note=note, key=KEY)
