"""Locks that the operating system releases when their process ends.

``flock`` of Unix and ``LockFileEx`` of Windows, through filelock. On a file system without locks
nothing is locked and nothing is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from filelock import lock_descriptor

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

_held = threading.local()


@contextlib.contextmanager
def limit_lock(root: Path, limited: Limited) -> Iterator[None]:
    """Keep other threads and processes from adding to what is limited in a folder of runs.

    A thread that has the lock may take it again. Where no file can be locked (a full disk) nothing
    is. Raises StudentError, in a sentence, where another keeps the lock for too long.
    """
    path = root / FOLDER / f"{limited}.lock"
    paths: set[Path] = _held.__dict__.setdefault("paths", set())
    if path in paths:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = lock(path, patience=PATIENCE_SECONDS)
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
        unlock(held)
