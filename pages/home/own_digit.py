"""A digit of one's own: what a recorded training reads in it, and from which step on."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor

import streamlit as st

from pages.components.digit_reader import Picture, Reading, digit_reader, drawn
from pages.i18n import _
from pages.ui import show, state
from tfm_core.inspect.attention.own_example import read_picture
from tfm_core.inspect.readings import read_from, readings
from tfm_core.runs.run import Run

logger = logging.getLogger(__name__)

FIRST = 3
"""The sample that stands on the board at the first visit."""
SURE = 0.5
"""The probability below which the model is said to be unsure."""
KEY = "home-digit"

_LOOK_AGAIN = 0.4  # seconds


class Models:
    """The models of a run as its training left them, loaded behind the page that needs them.

    Loading torch takes seconds and slows down what is drawn meanwhile, so it begins once the page
    is there.
    """

    def __init__(self, run: Run) -> None:
        """Load nothing yet."""
        self._run = run
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="digits")
        self._loaded: Future[None] | None = None

    @property
    def are_loaded(self) -> bool:
        """Whether a picture is read at once."""
        return self._loaded is not None and self._loaded.done()

    def load(self) -> Future[None]:
        """Begin to load them, once; return the promise."""
        if self._loaded is None:
            self._loaded = self._pool.submit(self._load)
        return self._loaded

    def _load(self) -> None:
        try:
            read(self._run, samples(self._run)[FIRST])
        except ValueError:
            return  # who reads is told why
        except Exception:
            logger.exception("The models of %s could not be loaded ahead.", self._run.id)


@st.cache_resource(show_spinner=False, max_entries=8)
def models(folder: str, _run: Run) -> Models:
    """Return the models of a run, the same ones for every visitor."""
    return Models(_run)


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

    st.fragment(part, run_every=None if were_loaded else _LOOK_AGAIN)()


def samples(run: Run) -> Picture:
    """Return the run's own examples, (10, 28, 28): one of each digit, none of them trained on."""
    images = run.probe().images
    assert images is not None
    picture: Picture = images[:, 0]
    return picture


def read(run: Run, picture: Picture) -> Reading:
    """Return what the run read in a drawing or a picture (H, W), with the weights of each time.

    Raises ValueError, in a sentence.
    """
    given, _notes = read_picture(run, picture)
    steps, shares = found = readings(run, given)
    digit = int(shares[-1].argmax())
    since = read_from(found, digit)
    assert since is not None
    return Reading(steps, shares, steps.index(since), said(digit, shares[-1, digit], since, steps))


def said(digit: int, share: float, since: int, steps: tuple[int, ...]) -> str:
    """Say which digit the last weights read, how surely, and from which step on."""
    if share < SURE:
        words = _("It is not sure: perhaps a {digit}, with {share}.")
    elif since == steps[0]:
        words = _("It reads a {digit}, and random weights already did: luck.")
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
