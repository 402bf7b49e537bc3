"""The answers of a run's weights to the validation set, computed in the background and cached.

One thread serves all sessions, so that a training keeps its processors. Steps that a visitor passes
while moving the slider are cancelled.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import streamlit as st

from pages.i18n import _
from pages.ui import state
from tfm_core.inspect.errors import answers as core
from tfm_core.inspect.errors.answers import Answers
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

AT_ONCE = 0.9
"""Seconds that a page waits before it shows the progress."""
_TICK = 0.4
_MAX_KEPT, _MAX_WAITING = 24, 8
_REQUESTED = "mistakes-requested"
_Key = tuple[str, int, int]


@dataclass(slots=True)
class Job:
    """Answers that are being computed. share: the progress; is_ahead: nobody waits for them."""

    future: Future[Answers] = field(default_factory=Future)
    share: float = 0.0
    is_ahead: bool = False

    def report(self, share: float) -> None:
        self.share = share


class Evaluations:
    """The jobs of this process, by weights."""

    def __init__(self) -> None:
        """Start the thread."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="mistakes")
        self._lock = threading.Lock()
        self._jobs: OrderedDict[_Key, Job] = OrderedDict()

    def enqueue(self, run: Run, step: int) -> Job:
        """Return the job of a step's weights, cached or new.

        Raises ValueError, in a sentence, without such weights or if too many jobs wait.
        """
        key = (str(run.folder), step, core.weights_mark(run, step))
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and not job.future.cancelled():
                job.is_ahead = False
                self._jobs.move_to_end(key)
                return job
            self._drop(lambda other: other.is_ahead)
            if sum(not other.future.done() for other in self._jobs.values()) >= _MAX_WAITING:
                raise StudentError(
                    "The server is busy with other runs; try again in a few seconds."
                )
            return self._start(key, run, step, is_ahead=False)

    def prefetch(self, run: Run, steps: tuple[int, ...]) -> None:
        with self._lock:
            if any(not job.future.done() for job in self._jobs.values()):
                return
            for step in steps:
                try:
                    key = (str(run.folder), step, core.weights_mark(run, step))
                except ValueError:
                    continue
                if key not in self._jobs:
                    self._start(key, run, step, is_ahead=True)

    def cancel(self, job: Job) -> None:
        """Cancel a job that has not started and that nobody waits for."""
        with self._lock:
            self._drop(lambda other: other is job)

    def _start(self, key: _Key, run: Run, step: int, *, is_ahead: bool) -> Job:
        job = self._jobs[key] = Job(is_ahead=is_ahead)
        job.future = self._pool.submit(core.answers, run, step, job.report)
        job.future.add_done_callback(lambda future: self._forget_failure(key, future))
        while len(self._jobs) > _MAX_KEPT:
            oldest = next(iter(self._jobs))
            self._jobs.pop(oldest).future.cancel()
        return job

    def _forget_failure(self, key: _Key, future: Future[Answers]) -> None:
        """Let the next request try again."""
        if future.cancelled() or future.exception() is not None:
            self._jobs.pop(key, None)

    def _drop(self, which: Callable[[Job], bool]) -> None:
        for job in [job for job in self._jobs.values() if which(job)]:
            job.future.cancel()


@st.cache_resource(show_spinner=False)
def evaluations() -> Evaluations:
    return Evaluations()


def answers(run: Run, step: int) -> Answers | None:
    """Return the answers of a step's weights; None while they are computed: a bar shows it.

    Raises ValueError, in a sentence, without such weights or data.
    """
    wanted = (run.id, step)
    job_before: Job | None
    before, job_before = st.session_state.pop(_REQUESTED, (None, None))
    if job_before is not None and before == wanted and job_before.future.done():
        job = job_before  # a failed one too: restarted, it would fail again
    else:
        job = evaluations().enqueue(run, step)
        if job_before is not None and job_before is not job:
            evaluations().cancel(job_before)
    try:
        evaluated = job.future.result(timeout=AT_ONCE)
    except TimeoutError:
        st.session_state[_REQUESTED] = (wanted, job)
        st.fragment(_progress, run_every=_TICK)(job, step)
        return None
    except CancelledError:  # by another session of this visitor
        state.draw_anew()
    return evaluated


def _progress(job: Job, step: int) -> None:
    if job.future.done():
        state.draw_anew()
    words = _("The weights of step {step} answer the validation set …", step=f"{step:,}")
    st.progress(job.share, words)
