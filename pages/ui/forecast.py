"""What a run would need, and where it could train: computed with torch on its own thread.

The first question loads torch, which takes seconds; the page is drawn meanwhile, and a fragment
looks again until the answer is there.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import streamlit as st

from tfm_core.config import Experiment, to_json

if TYPE_CHECKING:
    from tfm_core.facts.memory import Sizes
    from tfm_core.training.devices import Device
    from tfm_core.training.estimate import Estimate

logger = logging.getLogger(__name__)

SOON = 0.15
"""Seconds to wait for an answer before the page goes on without it, once torch is loaded."""
_REMEMBERED = 64
_TRIES = 2  # the first one of a process is slow, and another process may be busy for a moment


class ForecastQueue:
    """Answers by question, worked out one after the other."""

    def __init__(self) -> None:
        """Start with no thread; the first question starts it."""
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="forecast")
        self._futures: OrderedDict[str, Future[Any]] = OrderedDict()
        self._is_warm = False

    def ask(self, question: str, work: Callable[[], Any], patience: float = SOON) -> Future[Any]:
        """Return the answer to come, or the one that is known; wait for it ``patience`` seconds."""
        with self._lock:
            future = self._futures.get(question)
            if future is None or _is_void(future):
                future = self._futures[question] = self._pool.submit(self._work, work)
            self._futures.move_to_end(question)
            while len(self._futures) > _REMEMBERED:
                self._futures.popitem(last=False)[1].cancel()
        if self._is_warm and not future.done():
            with contextlib.suppress(TimeoutError):
                future.exception(patience)
        return future

    def wait(self) -> None:
        """Wait until all pending questions are answered."""
        self._pool.submit(lambda: None).result()

    def _work(self, work: Callable[[], Any]) -> Any:
        try:
            answer = work()
        except ValueError:  # an answer too: a sentence about what was asked
            raise
        except Exception:
            logger.exception("A forecast failed; it is made anew when it is asked for again.")
            raise
        self._is_warm = True
        return answer


def _is_void(future: Future[Any]) -> bool:
    """Say whether a future holds no answer and never will."""
    if not future.done() or future.cancelled():
        return future.cancelled()
    error = future.exception()
    return error is not None and not isinstance(error, ValueError)


def estimate(experiment: Experiment, device: str) -> Future[Estimate]:
    """Return what a run will need, or the promise of it; ValueError for an unusable device."""

    def work() -> Estimate:
        from tfm_core.training.apart import estimate as measure

        tries = [measure(experiment, device) for _ in range(_TRIES)]
        return min(tries, key=lambda found: found.seconds)

    return _asked().ask(f"{device} {to_json(experiment)}", work)


def sizes(experiment: Experiment) -> Future[Sizes]:
    """Return how large a model and a step of it are, or the promise of it: counted, not measured.

    It waits for nothing that is being measured.
    """

    def work() -> Sizes:
        from tfm_core.facts.memory import sizes as count

        return count(experiment)

    return _counted().ask(to_json(experiment), work)


def step_time(racer: str, length: int, number: int) -> Future[float]:
    """Return the seconds of a pass of one of ``before.models`` at a length, or the promise of it.

    Another ``number`` asks for another measurement. A page asks for many: it waits for none.
    """

    def work() -> float:
        from tfm_core.inspect.attention.rnn_attention import models
        from tfm_core.inspect.speed.step_times import step_time as measure

        return measure(models()[racer], length)

    return _asked().ask(f"step {racer} {length} {number}", work, patience=0)


def devices() -> Future[list[Device]]:
    """Return the devices that runs can be trained on, or the promise of them."""

    def work() -> list[Device]:
        from tfm_core.runs.backends.choice import devices as look

        return look()

    return _asked().ask("devices", work)


def wait() -> None:
    """Wait until all pending questions are answered: then no thread is at work."""
    _asked().wait()
    _counted().wait()


def answer(future: Future[Any]) -> Any | None:
    """Return the answer that is there, or None. Raises what the work raised."""
    return future.result() if future.done() else None


@st.cache_resource(show_spinner=False)
def _asked() -> ForecastQueue:
    return ForecastQueue()


@st.cache_resource(show_spinner=False)
def _counted() -> ForecastQueue:
    return ForecastQueue()
