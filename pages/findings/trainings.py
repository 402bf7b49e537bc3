"""Trainings of superposition in the background: one for each seed, which all visitors share.

One thread trains them in turn, for a few seconds each. A seed always gives the same weights, so
each seed is trained once in the life of the server, however many visitors ask for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import streamlit as st

from tfm_core.studies import superposition as core
from tfm_core.studies.superposition import Best, ToyTraining

N_SEEDS = 5


class Trainings:
    """The trainings of this process, by seed."""

    def __init__(self) -> None:
        """Make the thread; it starts with the first training."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="superposition")
        self._lock = threading.Lock()
        self._begun: dict[int, tuple[ToyTraining, Future[None]]] = {}
        self._best: Future[Best] | None = None

    def start(self, seeds: Iterable[int]) -> None:
        """Train seeds that are missing or failed, and look for the lowest loss."""
        with self._lock:
            for seed in seeds:
                if seed not in self._begun or _failed(self._begun[seed][1]):
                    training = ToyTraining(seed)
                    self._begun[seed] = training, self._pool.submit(training.run)
                if self._best is None or _failed(self._best):  # behind the first seed
                    self._best = self._pool.submit(core.best)

    @property
    def every(self) -> list[ToyTraining]:
        """All of them, by seed."""
        with self._lock:
            return [self._begun[seed][0] for seed in sorted(self._begun)]

    @property
    def best(self) -> Best | None:
        """The best that is known; None until it is found. Raises what stopped the search."""
        best = self._best
        return best.result() if best is not None and best.done() else None

    def check(self) -> None:
        """Raise what stopped a training."""
        for _training, future in self._begun.copy().values():
            if _failed(future):
                future.result()

    @property
    def waiting(self) -> list[ToyTraining]:
        """Those that wait or go on, by seed."""
        with self._lock:
            begun = [self._begun[seed] for seed in sorted(self._begun)]
        return [training for training, future in begun if not future.done()]

    @property
    def is_busy(self) -> bool:
        return bool(self.waiting) or (self._best is not None and not self._best.done())


def _failed(future: Future[None] | Future[Best]) -> bool:
    return future.done() and future.exception() is not None


@st.cache_resource(show_spinner=False)
def trainings() -> Trainings:
    return Trainings()
