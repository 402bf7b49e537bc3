"""Locks that the operating system drops by itself when their process ends, however it ends.

``flock`` of Unix. Where the system or the file system has none, as on Windows, nothing is locked
and nothing is refused: claims hold without it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_LOOK_SECONDS = 0.02


def lock(path: Path, *, patience: float = 0.0) -> int:
    """Lock a file, which is made if need be, and return its descriptor: closing it unlocks.

    patience: seconds to go on trying. Raises BlockingIOError where another process has the lock,
    and OSError where the file cannot be made.
    """
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    end = time.monotonic() + patience
    while True:
        try:
            _flock(file)
            return file
        except BlockingIOError:
            if time.monotonic() >= end:
                os.close(file)
                raise
        time.sleep(_LOOK_SECONDS)


def is_locked(path: Path) -> bool:
    """Say whether a process has the lock of a file. Never raises."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        _flock(file)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def unlock(file: int) -> None:
    """Give a lock back. Never raises."""
    with contextlib.suppress(OSError):
        os.close(file)


def _flock(file: int) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}:
            raise BlockingIOError(error.errno, error.strerror) from None
        # else the file system has no locks: see above
