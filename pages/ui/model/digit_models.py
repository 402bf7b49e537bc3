"""The models that read a drawing, loaded once for all visitors, after the page is drawn."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor

import streamlit as st

from pages.components.digits import Picture
from tfm_core.inspect.attention.own_example import read_picture
from tfm_core.inspect.progress.pictures import answers_by_step
from tfm_core.runs.run import Run

logger = logging.getLogger(__name__)

LOOK_AGAIN = 0.4
"""Seconds between two looks whether they are loaded."""
MAX_SAMPLES = 10


class Models:
    """The models of a run as its training left them, loaded behind the page that needs them.

    Loading torch takes seconds and slows down what is drawn meanwhile, so it begins once the page
    is there.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="digits")
        self._loaded: Future[None] | None = None

    @property
    def are_loaded(self) -> bool:
        return self._loaded is not None and self._loaded.done()

    def load(self) -> Future[None]:
        """Start loading, once; return the future."""
        if self._loaded is None:
            self._loaded = self._pool.submit(self._load)
        return self._loaded

    def _load(self) -> None:
        try:
            answers_by_step(self._run, read_picture(self._run, samples(self._run)[0])[0])
        except ValueError:
            return  # the page reports it when it reads
        except Exception:
            logger.exception("The models of %s could not be loaded ahead.", self._run.id)


@st.cache_resource(show_spinner=False, max_entries=8)
def models(folder: str, _run: Run) -> Models:
    return Models(_run)


def samples(run: Run) -> Picture:
    """Return the run's own examples, (N, size, size), none of them trained on.

    Of a run of digits there are ten, one of each digit.
    """
    images = run.probe().images
    assert images is not None
    picture: Picture = images[:MAX_SAMPLES, 0]
    return picture
