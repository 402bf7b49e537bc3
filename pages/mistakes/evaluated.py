"""The answers of a run's weights to the validation set, computed behind the page and kept.

One thread of the process asks, whoever looks: a training that goes on keeps its processors, and a
visitor who moves the slider quickly is not asked to wait for every step that was passed.
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
"""Seconds for which a page waits before it shows how far the answers are."""
_TICK = 0.4
_KEPT, _MAX_WAITING = 24, 8
_ASKED = "mistakes-asked"
_Key = tuple[str, int, int]


@dataclass(slots=True)
class Job:
    """Answers that are being computed. share: how much of them is; is_ahead: nobody waits yet."""

    future: Future[Answers] = field(default_factory=Future)
    share: float = 0.0
    is_ahead: bool = False

    def heard(self, share: float) -> None:
        self.share = share


class Evaluations:
    """The jobs of this process, by the weights that they ask."""

    def __init__(self) -> None:
        """Begin without any."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="mistakes")
        self._lock = threading.Lock()
        self._jobs: OrderedDict[_Key, Job] = OrderedDict()

    def ask(self, run: Run, step: int) -> Job:
        """Return the job of a step's weights, begun now where it is not kept.

        Raises ValueError, in a sentence, where there are no such weights or too many wait.
        """
        key = (str(run.folder), step, core.weights_mark(run, step))
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and not job.future.cancelled():
                job.is_ahead = False
                self._jobs.move_to_end(key)
                return job
            self._drop(lambda one: one.is_ahead)
            if sum(not one.future.done() for one in self._jobs.values()) >= _MAX_WAITING:
                raise StudentError(
                    "The server is busy with other runs; try again in a few seconds."
                )
            return self._begin(key, run, step, is_ahead=False)

    def ask_ahead(self, run: Run, steps: tuple[int, ...]) -> None:
        with self._lock:
            if any(not job.future.done() for job in self._jobs.values()):
                return
            for step in steps:
                try:
                    key = (str(run.folder), step, core.weights_mark(run, step))
                except ValueError:
                    continue
                if key not in self._jobs:
                    self._begin(key, run, step, is_ahead=True)

    def leave(self, job: Job) -> None:
        """Cancel a job that has not begun and that nobody waits for any more."""
        with self._lock:
            self._drop(lambda one: one is job)

    def _begin(self, key: _Key, run: Run, step: int, *, is_ahead: bool) -> Job:
        job = self._jobs[key] = Job(is_ahead=is_ahead)
        job.future = self._pool.submit(core.answers, run, step, job.heard)
        job.future.add_done_callback(lambda future: self._forget_failure(key, future))
        while len(self._jobs) > _KEPT:
            oldest = next(iter(self._jobs))
            self._jobs.pop(oldest).future.cancel()
        return job

    def _forget_failure(self, key: _Key, future: Future[Answers]) -> None:
        """Retry at the next request: data may be there by then."""
        if future.cancelled() or future.exception() is not None:
            self._jobs.pop(key, None)

    def _drop(self, which: Callable[[Job], bool]) -> None:
        for job in [job for job in self._jobs.values() if which(job)]:
            job.future.cancel()


@st.cache_resource(show_spinner=False)
def evaluations() -> Evaluations:
    return Evaluations()


def answers(run: Run, step: int) -> Answers | None:
    """Return what the weights of a step answer; None while that is being computed, and said.

    Raises ValueError, in a sentence, where there are no such weights or no data.
    """
    wanted = (run.id, step)
    job_before: Job | None
    before, job_before = st.session_state.pop(_ASKED, (None, None))
    if job_before is not None and before == wanted and job_before.future.done():
        job = job_before  # a failed one too: restarted, it would fail forever
    else:
        job = evaluations().ask(run, step)
        if job_before is not None and job_before is not job:
            evaluations().leave(job_before)
    try:
        evaluated = job.future.result(timeout=AT_ONCE)
    except TimeoutError:
        st.session_state[_ASKED] = (wanted, job)
        st.fragment(_progress, run_every=_TICK)(job, step)
        return None
    except CancelledError:  # another session of this visitor looks at something else
        state.draw_anew()
    return evaluated


def _progress(job: Job, step: int) -> None:
    if job.future.done():
        state.draw_anew()
    words = _("The weights of step {step} answer the validation set …", step=f"{step:,}")
    st.progress(job.share, words)
