"""A clock that stands still while its process is suspended (SIGSTOP, a debugger, a full host)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LONGEST_BEAT = 2.0
"""A process that looks at the clock several times a second and didn't for so long was asleep."""


class AwakeClock:
    """Seconds that the process was awake. A thread has to ``look`` a few times a second."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begin now. clock: seconds that never go back."""
        self._clock, self._lock = clock, threading.Lock()
        self._looked = clock()
        self._asleep = 0.0

    def __call__(self) -> float:
        """Return the seconds awake; only differences mean anything."""
        return self.look() - self._asleep

    @property
    def asleep(self) -> float:
        """Seconds that were slept through so far."""
        return self._asleep

    def look(self) -> float:
        """Note that the process is awake now; return the underlying clock."""
        with self._lock:
            now = self._clock()
            if now - self._looked > LONGEST_BEAT:
                self._asleep += now - self._looked
            self._looked = now
            return now
