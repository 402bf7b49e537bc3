"""Whether a server can do what it is there for: start runs, and write what they learn.

Asked by load balancers, as often as they like: a look is kept for a second, and longer where it
took long, so that asking costs a small share of one core at most.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.sentences import N_, joined

KEPT_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
"""After this time a network folder counts as not responding."""

_SHARE = 0.05  # of one core, for looking
_TRIED = b"\0" * 4096  # most disks allocate such blocks


@dataclass(frozen=True, slots=True)
class Health:
    """One look at a server. reason: what keeps it from training, in a sentence, or None.

    running, waiting: runs; max_running, max_waiting: how many may.
    """

    reason: str | None
    running: int = 0
    max_running: int = 0
    waiting: int = 0
    max_waiting: int = 0


class Checkup:
    """Looks at a queue and its folder; safe to ask from many threads."""

    def __init__(self, queue: RunQueue) -> None:
        """Look at a queue; nothing is looked at yet."""
        self._queue = queue
        self._lock = threading.Lock()
        self._known: Health | None = None
        self._until = 0.0

    def look(self) -> Health:
        """Return how the server does, at most a moment old. Never raises."""
        if not self._lock.acquire(timeout=PATIENCE_SECONDS):
            return Health("The folder of runs does not answer.")
        try:
            begin = time.monotonic()
            if self._known is None or begin >= self._until:
                self._known = _look(self._queue)
                end = time.monotonic()
                self._until = end + max(KEPT_SECONDS, (end - begin) / _SHARE)
            return self._known
        finally:
            self._lock.release()


def _look(queue: RunQueue) -> Health:
    root, limits = queue.store.root, queue.limits
    runs = [run for run in queue.store.list() if not run.meta.recorded]
    # who only shows writes nothing, and its disk may be read-only
    reason = None if limits.only_shows else _reason_not_to_write(root)
    if not queue.is_working:
        reason = "The queue has ended, so that no run is started; the server's log says why."
    return Health(
        reason,
        running=sum(run.status.is_alive for run in runs),
        max_running=queue.max_running,
        waiting=len(waiting_line.ids(root)),
        max_waiting=limits.max_queued,
    )


def _reason_not_to_write(root: Path) -> str | None:
    """Write a temporary file into the folder."""
    try:
        with tempfile.TemporaryFile(dir=_there(root), buffering=0) as file:
            file.write(_TRIED)
    except OSError as error:
        return joined(N_("The folder of runs cannot be written."), refusal(error))
    return None


def _there(root: Path) -> Path:
    """Return the folder, or where it will be made with the first run."""
    return next(place for place in (root, *root.parents) if os.path.lexists(place))
