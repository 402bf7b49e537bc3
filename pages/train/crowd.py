"""The crowd: how many sessions poll training runs. One process serves all of them.

A session's two polls (curves, predictions) cost some 55 ms, so with more sessions each polls less
often; presses stay fast and the training keeps its core.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable

import streamlit as st

POLLS_PER_SECOND = 7
"""Polls per second; together they take less than half a core."""

SESSION_TIMEOUT = 30.0
"""A session that has not polled for this long has left."""

_SESSION = "crowd-session"


class Crowd:
    """When each session polled last. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._polls: dict[str, float] = {}

    def record_poll(self, session: str) -> int:
        """Record a poll of a session and return how many sessions are polling."""
        now = self._clock()
        with self._lock:
            self._polls[session] = now
            gone = [name for name, when in self._polls.items() if now - when > SESSION_TIMEOUT]
            for name in gone:
                del self._polls[name]
            return len(self._polls)


def pace(seconds: float, n_sessions: int) -> float:
    """Return the seconds between two polls: the given ones, or more in a crowd.

    Above a second they are whole, since each change of pace redraws the page.
    """
    least = n_sessions / POLLS_PER_SECOND
    return max(seconds, least if least <= 1 else float(math.ceil(least)))


def record_poll() -> int:
    """Record a poll of a session and return how many sessions are polling."""
    return _crowd().record_poll(st.session_state.setdefault(_SESSION, secrets.token_hex(8)))


@st.cache_resource(show_spinner=False)
def _crowd() -> Crowd:
    return Crowd()
