"""Trainings of superposition in the background: one for each seed, which all visitors share.

One thread trains them in turn, for a few seconds each. A seed always gives the same weights, so
each seed is trained once in the life of the server, however many visitors ask for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import streamlit as st

from tfm_core.inspect.discover import superposition as core
from tfm_core.inspect.discover.superposition import Best, Snapshot, ToyTraining

N_SEEDS = 5


@dataclass(slots=True)
class Job:
    """A training that waits, goes on or is done, and its snapshots so far."""

    seed: int
    future: Future[ToyTraining] = field(default_factory=Future)
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def training(self) -> ToyTraining | None:
        """The training as far as it came; None while it has not begun. Raises what stopped it."""
        if self.future.done():
            return self.future.result()
        return core.so_far(self.seed, list(self.snapshots)) if self.snapshots else None

    @property
    def step(self) -> int:
        return self.snapshots[-1][0] if self.snapshots else 0


class Trainings:
    """The jobs of this process, by seed."""

    def __init__(self) -> None:
        """Make the thread; it starts with the first job."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="superposition")
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._best: Future[Best] | None = None

    def start(self, seeds: Iterable[int]) -> None:
        """Train seeds that are missing or failed, and look for the lowest loss."""
        with self._lock:
            for seed in seeds:
                if seed not in self._jobs or _failed(self._jobs[seed].future):
                    job = self._jobs[seed] = Job(seed)
                    job.future = self._pool.submit(core.trained, seed, job.snapshots.append)
                if self._best is None or _failed(self._best):  # behind the first seed
                    self._best = self._pool.submit(core.best)

    @property
    def jobs(self) -> list[Job]:
        """All of them, by seed."""
        with self._lock:
            return [self._jobs[seed] for seed in sorted(self._jobs)]

    @property
    def best(self) -> Best | None:
        """The best that is known; None until it is found. Raises what stopped the search."""
        best = self._best
        return best.result() if best is not None and best.done() else None

    @property
    def is_busy(self) -> bool:
        futures = [job.future for job in self.jobs]
        return any(not one.done() for one in (*futures, self._best) if one is not None)


def _failed(future: Future[ToyTraining] | Future[Best]) -> bool:
    return future.done() and future.exception() is not None


@st.cache_resource(show_spinner=False)
def trainings() -> Trainings:
    return Trainings()
