"""What makes a file survive a power cut: its content on the disk before its name relies on it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk. Raises OSError."""
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


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
