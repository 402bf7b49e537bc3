"""Locks that the operating system releases when their process ends.

``flock`` of Unix and ``LockFileEx`` of Windows, through filelock. On a file system without locks
nothing is locked and nothing is refused.

A process holds a ``RunLock`` (``claims/lock`` in the run's folder) while it trains a run or changes
its status. ``status.json`` names the process: a run is also held by the worker that the queue chose
and that still imports torch, and by a process on another machine, whose locks cannot be seen here,
while its heart beats. Only who holds a run writes its status; see ``run_queue`` for the order.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from filelock import lock_descriptor

from tfm_core.runs.process.identity import is_same, process_id
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

FOLDER = ".queue"
"""The folder, among the runs, of the waiting line and of these locks."""

_LOOK_SECONDS = 0.02


def lock(path: Path, *, patience: float = 0.0) -> int:
    """Lock a file, which is made if need be, and return its descriptor: closing it unlocks.

    patience: seconds to go on trying. Raises BlockingIOError where another process has the lock,
    and OSError where the file cannot be made.
    """
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    end = time.monotonic() + patience
    while not _is_had(file):
        if time.monotonic() >= end:
            os.close(file)
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
        time.sleep(_LOOK_SECONDS)
    return file


def is_locked(path: Path) -> bool:
    """Return whether a process has the lock of a file. Never raises."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _is_had(file)
    finally:
        os.close(file)


def unlock(file: int) -> None:
    """Give a lock back. Never raises."""
    with contextlib.suppress(OSError):
        os.close(file)


def _is_had(file: int) -> bool:
    """Take the lock; return whether this process has it, or the file system has no locks."""
    try:
        return lock_descriptor(file, blocking=False)
    except OSError:
        return True


Limited = Literal["runs", "sets", "sweeps", "lessons"]

PATIENCE_SECONDS = 30.0
"""How long to wait for the others: each holds a lock while it counts and writes a few files."""

_this_thread = threading.local()


@contextlib.contextmanager
def limit_lock(root: Path, limited: Limited) -> Iterator[None]:
    """Keep other threads and processes from adding to what is limited in a folder of runs.

    A thread that has the lock may take it again. Where no file can be locked (a full disk) nothing
    is. Raises StudentError, in a sentence, where another keeps the lock for too long.
    """
    path = root / FOLDER / f"{limited}.lock"
    paths: set[Path] = _this_thread.__dict__.setdefault("paths", set())
    if path in paths:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = lock(path, patience=PATIENCE_SECONDS)
    except BlockingIOError:
        raise StudentError("The server is busy. Try again.") from None
    except OSError:
        yield
        return
    paths.add(path)
    try:
        yield
    finally:
        paths.discard(path)
        unlock(file)


# Earlier versions locked there, too: a worker that outlives an update of its server is seen.
CLAIMS = "claims"
LOCK_SECONDS = 1.0  # another process may be changing the status, or ending


class RunLocked(StudentError):
    """Another process works on this run."""


class RunLock:
    """A run that this process holds while it works on it. Use it as a context, or ``release``."""

    def __init__(self, folder: Path, *, patience: float = LOCK_SECONDS) -> None:
        """Lock the run. Raises RunLocked, and OSError where no file can be written.

        patience: seconds to wait for its holder.
        """
        self.folder, self._mark = folder, process_id()
        (folder / CLAIMS).mkdir(exist_ok=True)
        try:
            self._lock: int | None = lock(folder / CLAIMS / "lock", patience=patience)
        except BlockingIOError:
            raise _locked(folder) from None
        if read_status(folder).is_alive and not self.is_mine:
            self.release()
            raise _locked(folder)

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
            unlock(self._lock)
            self._lock = None

    @property
    def is_mine(self) -> bool:
        """Whether the status names no other process: one may have taken the run over meanwhile."""
        mark = read_status(self.folder).mark
        return mark is None or is_same(mark, self._mark)


def _locked(folder: Path) -> RunLocked:
    return RunLocked("Another process is training the run {id}.", id=folder.name)
