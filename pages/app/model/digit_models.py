"""The models that read a drawing, loaded once for all visitors, after the page is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from pages.app import show, state
from pages.components.digits import Picture
from pages.i18n import _
from tfm_core.background import Background
from tfm_core.inspect.attention.example import read_picture
from tfm_core.inspect.attention.pictures import AnswersByStep, answers_by_step, right_since
from tfm_core.runs.run import Run

LOOK_AGAIN = 0.4
"""Seconds between two looks whether they are loaded."""
MAX_SAMPLES = 10
SURE = 0.5
"""The probability below which the model counts as unsure."""
T = TypeVar("T")


LOADED = Background("digits", most=8)
"""Whether the models of a run are loaded, by its folder."""


def are_loaded(run: Run) -> bool:
    asked = LOADED.asked.get(run.folder)
    return asked is not None and asked.future.done()


def load(run: Run) -> Future[None]:
    """Load the models of a run as its training left them, once; return the future.

    Loading torch takes seconds and slows down what is drawn meanwhile, so it begins once the page
    is there. The page reports what fails when it reads.
    """
    return LOADED.ask(run.folder, lambda: _load(run)).future


def _load(run: Run) -> None:
    answers_by_step(run, read_picture(run, samples(run)[0])[0])


def samples(run: Run) -> Picture:
    """Return the run's own examples, (N, size, size), none of them trained on.

    Of a run of digits there are ten, one of each digit.
    """
    images = run.probe().images
    assert images is not None
    picture: Picture = images[:MAX_SAMPLES, 0]
    return picture


def board(run: Run, draw: Callable[[bool], None]) -> None:
    """Draw a board in a fragment that polls until the run's models are loaded.

    draw: gets whether they are.
    """
    is_drawn = False

    def part(is_pending: bool) -> None:
        nonlocal is_drawn
        if is_drawn and is_pending:
            load(run)
        is_drawn = True
        draw(not is_pending)

    state.poll(lambda: not are_loaded(run), part, every=LOOK_AGAIN)


def reading_or_note(
    picture: Picture | None, read: Callable[[Picture], T], *, is_ready: bool
) -> tuple[T | None, str]:
    """Return what is read in a drawing, if anything, and a note for the board."""
    if not is_ready:
        return None, _("Loading the model …")
    if picture is not None:
        try:
            return read(picture), ""
        except ValueError as error:
            return None, _(error)
    return None, _("Draw a digit; the bars follow each stroke.")


def answer(found: AnswersByStep, classes: Sequence[str], words: Callable[[int], str]) -> str:
    """Return what a drawing is read as, and since when. words: of a step."""
    steps, shares = found
    best = int(shares[-1].argmax())
    digit, share = classes[best], float(shares[-1, best])
    if share < SURE:
        return _("Unsure: perhaps a {digit} ({share}).", digit=digit, share=show.percent(share))
    since = right_since(found, best)
    assert since is not None
    if len(steps) == 1:
        return _("Reads a {digit}; no earlier weights were saved.", digit=digit)
    if since == steps[0]:
        return _("Reads a {digit}, but so do random weights.", digit=digit)
    return _("Reads a {digit} since step {step}.", digit=digit, step=words(since))
