"""A folder whose files are treated as Windows treats them, on Linux.

What this process has open is not replaced, renamed or removed, nor is a folder it lies in, and
names that Windows has not are refused. ``/proc`` tells what is open, so files that another library
opened or mapped into memory count, too; only what Python itself asks for is refused. On Windows
itself there is nothing to add.
"""

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHARING_VIOLATION, ACCESS_DENIED, INVALID_NAME = 32, 5, 123

_NO_NAME = re.compile(
    r'.*[<>:"|?*\\\x00-\x1f].*|.*[. ]|(con|prn|aux|nul|com\d|lpt\d)(\..*)?', re.IGNORECASE
)
_roots: list[str] = []
_is_watched: list[bool] = []


@contextlib.contextmanager
def windows(root: Path) -> Iterator[None]:
    """Keep Windows' rules below a folder, for what this process asks of its files."""
    if sys.platform == "win32":
        yield
        return
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("nothing says here which files are open")
    if not _is_watched:
        sys.addaudithook(_look)  # for good: what is out of all roots is none of its business
        _is_watched.append(True)
    _roots.append(os.path.realpath(root) + os.sep)
    try:
        yield
    finally:
        _roots.pop()


def _look(event: str, values: tuple[Any, ...]) -> None:
    if not _roots:
        return
    if event == "os.remove":
        _unless_open(_path(*values))
    elif event == "os.rename":
        source, target, at_source, at_target = values
        _unless_open(_path(source, at_source))
        _unless_open(_path(target, at_target))
        _if_named(_path(target, at_target))
    elif event == "os.mkdir":
        _if_named(_path(values[0], values[2]))
    elif event == "os.link":
        _if_named(_path(values[1], values[3]))
    elif event == "open" and isinstance(values[0], str | os.PathLike) and values[2] & os.O_CREAT:
        _if_named(_path(values[0], -1))


def _path(name: Any, folder: int) -> str:
    """Return the whole path, or an empty one where it is below no root."""
    path = os.path.join("" if folder == -1 else os.readlink(f"/proc/self/fd/{folder}"), name)
    path = os.path.abspath(path)
    return path if any(path.startswith(root) for root in _roots) else ""


def _if_named(path: str) -> None:
    if _NO_NAME.fullmatch(os.path.basename(path)):
        raise _error(OSError, errno.EINVAL, INVALID_NAME, path)


def _unless_open(path: str) -> None:
    """Raise PermissionError where a file is open, or one in a folder."""
    try:
        facts = os.lstat(path)
    except OSError:
        return
    inside = path + os.sep if stat.S_ISDIR(facts.st_mode) else None
    for name, device, number in _open_files():
        if inside is not None and name.startswith(inside):
            raise _error(PermissionError, errno.EACCES, ACCESS_DENIED, path)
        if inside is None and (device, number) == (facts.st_dev, facts.st_ino):
            raise _error(PermissionError, errno.EACCES, SHARING_VIOLATION, path)


def _open_files() -> Iterator[tuple[str, int, int]]:
    """Yield path, device and inode of each plain file that is open here, or part of the memory."""
    for folder in ("/proc/self/fd", "/proc/self/map_files"):
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):  # closed meanwhile
                    facts = os.stat(f"{folder}/{name}")
                    if stat.S_ISREG(facts.st_mode):
                        yield os.readlink(f"{folder}/{name}"), facts.st_dev, facts.st_ino


def _error(kind: type[OSError], number: int, winerror: int, path: str) -> OSError:
    error = kind(number, os.strerror(number), path)
    error.winerror = winerror  # type: ignore[attr-defined]
    return error
