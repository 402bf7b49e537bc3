"""Locks that the operating system drops by itself when their process ends, however it ends.

``flock`` of Unix and ``LockFileEx`` of Windows, as filelock calls them. Where a file system has
none, nothing is locked and nothing is refused: claims hold without it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path

from filelock import lock_descriptor

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
    """Say whether a process has the lock of a file. Never raises."""
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
    """Take the lock; say whether this process has it now, or there is none to have."""
    try:
        return lock_descriptor(file, blocking=False)
    except OSError:
        return True
