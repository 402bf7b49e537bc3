"""Holds: at most one process works on a run, whatever programs share its folder.

A process locks ``claims/lock`` in the run's folder while it trains the run or changes its status.
The operating system releases that lock when the process ends, so a lock never outlives its process
and no clock decides. ``status.json`` names the process: a run is also held by the worker that the
queue chose and that still imports torch, and by a process on another machine whose locks cannot be
seen here, while its heart beats.

Only who holds a run writes its status; see ``run_queue`` for the order.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from tfm_core.runs.disk import locks
from tfm_core.runs.process.identity import is_same, process_id
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

# Earlier versions locked there, too: a worker that outlives an update of its server is seen.
FOLDER = "claims"
LOCK_SECONDS = 1.0  # somebody may just be changing the status, or be dying


class RunLocked(StudentError):
    """Another process works on this run."""


class RunLock:
    """A run that this process holds while it works on it. Use it as a context, or ``release``."""

    def __init__(self, folder: Path, *, patience: float = LOCK_SECONDS) -> None:
        """Lock the run. Raises RunLocked, and OSError where no file can be written.

        patience: seconds to wait for who holds it.
        """
        self.folder, self._mark = folder, process_id()
        (folder / FOLDER).mkdir(exist_ok=True)
        try:
            self._lock: int | None = locks.lock(folder / FOLDER / "lock", patience=patience)
        except BlockingIOError:
            raise _held(folder) from None
        if read_status(folder).is_alive and not self.is_mine:
            self.release()
            raise _held(folder)

    def __enter__(self) -> Self:
        """Return the lock."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let others work on the run."""
        self.release()

    def release(self) -> None:
        """Let others work on the run; once is enough. Never raises."""
        if self._lock is not None:
            locks.unlock(self._lock)
            self._lock = None

    @property
    def is_mine(self) -> bool:
        """Whether the status names no other process: one may have taken the run over meanwhile."""
        mark = read_status(self.folder).mark
        return mark is None or is_same(mark, self._mark)


def _held(folder: Path) -> RunLocked:
    return RunLocked("Another process trains the run {id}.", id=folder.name)
