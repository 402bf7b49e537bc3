"""Files that survive a power cut: their content is on the disk before a name refers to it.

Also what Windows needs: binary mode, and patience while another program has a file open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

BINARY = getattr(os, "O_BINARY", 0)
"""For ``os.open``: on Windows a line end would become two bytes without it."""

OPEN_IS_HELD = sys.platform == "win32"
"""Whether a file that is open, under any of its names, cannot be replaced or removed."""

_HELD = {5, 32}  # ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION
_HELD_SECONDS = (0.01, 0.02) + 40 * (0.05,)
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk. Raises OSError."""
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def replace(source: Path, target: Path) -> None:
    """Give a file another's name and place, at once. Raises OSError; see ``patiently``."""
    patiently(os.replace, source, target)


def rename(source: Path, target: Path) -> None:
    """Give a folder a name that is free, at once. Raises OSError; see ``patiently``."""
    patiently(os.rename, source, target)


def remove(path: Path) -> None:
    """Remove a file, if there is one. Raises OSError; see ``patiently``."""
    with contextlib.suppress(FileNotFoundError):
        patiently(os.unlink, path)


def patiently(call: Callable[..., T], *values: Any) -> T:
    """Ask the operating system again, for two seconds, while it says that a file is held.

    Windows says so of a file that another program has open, a reader of the app or a virus
    scanner, of a folder with such a file, and for a moment of one that is just being replaced. Who
    reads a folder file by file holds it most of the time: the gaps are found by asking often.
    """
    for seconds in _HELD_SECONDS:
        try:
            return call(*values)
        except PermissionError as error:
            if not _is_held(error):
                raise
            time.sleep(seconds)
    return call(*values)


def _is_held(error: PermissionError) -> bool:
    winerror = getattr(error, "winerror", None)
    if OPEN_IS_HELD and winerror is None:  # of opening, Windows' C says no more, and of folders so
        return error.filename is not None and not os.path.isdir(error.filename)
    return winerror in _HELD


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where folders can be asked. Raises OSError.

    Windows and some network folders cannot be asked; they keep their own promises.
    """
    try:
        folder = os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in _NOT_FOR_FOLDERS:
            return
        raise
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise
    finally:
        os.close(folder)
