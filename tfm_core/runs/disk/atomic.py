"""Files that are either the old one or the new one, and a cache of what was read from them."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from tfm_core.disk import BINARY, replace, sync_folder
from tfm_core.reading import Unreadable, object_of
from tfm_core.sentences import StudentError


def write_bytes(path: Path, content: bytes, *, lasting: bool = False) -> None:
    """Write beside and rename, so that a reader never sees half a file. Raises OSError.

    lasting: also after a power cut: the content is on the disk before the name points to it, and
    the name is when this returns.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(beside, content, lasting=lasting)
        replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    if lasting:
        sync_folder(path.parent)


def write_output(path: Path, content: bytes) -> None:
    """Write a file where a person asked for it. Raises StudentError, which names the path.

    A plain file is replaced whole; what a link leads to, a device or a pipe is written into.
    """
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with path.open("wb") as file:
                file.write(content)
        else:
            write_bytes(path, content)
    except OSError as error:
        raise StudentError(
            "Can't write {path}: {why}.", path=str(path), why=error.strerror
        ) from None


def write_new(path: Path, content: bytes, *, lasting: bool = False) -> None:
    """Write a file that must not be there yet. Raises OSError; then half of it may lie there."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        if lasting:
            os.fsync(file)
    finally:
        os.close(file)


def write_json(path: Path, values: Any, *, lasting: bool = False) -> None:
    """Write plain values as JSON, whole or not at all; see ``write_bytes``. Raises OSError."""
    content = (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()
    write_bytes(path, content, lasting=lasting)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a small JSON file, or None if it is missing or damaged."""
    try:
        return object_of(path, most=2**20)
    except (FileNotFoundError, Unreadable):
        return None


Read = TypeVar("Read")

_SETTLED_NS = 2 * 10**9
"""A file that changed just now is not cached: a second change within one tick of the file
system's clock, on the same inode, would go unnoticed."""


class CachedReader(Generic[Read]):
    """Calls ``read`` for a file again only after the file has changed.

    most: files to remember; larger ones than ``largest`` bytes are read anew each time. What
    ``read`` returns is shared, so nobody may change it; what it raises is raised each time.
    """

    def __init__(
        self, read: Callable[[Path], Read], *, most: int = 4096, largest: int = 2**15
    ) -> None:
        """Begin with nothing."""
        self._read, self._most, self._largest = read, most, largest
        self._kept: dict[str, tuple[tuple[int, ...], Read]] = {}
        self._lock = threading.Lock()

    def of(self, folder: Path, name: str) -> Read:
        """Return the content of a file of a folder."""
        place = f"{folder}{os.sep}{name}"  # a Path of each would take longer than to look
        try:
            facts = os.lstat(place)
        except OSError:
            return self._read(folder / name)
        now = (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_size, facts.st_mode)
        kept = self._kept.get(place)
        if kept is not None and kept[0] == now:
            return kept[1]
        content = self._read(folder / name)
        changed = max(facts.st_mtime_ns, facts.st_ctime_ns)
        if facts.st_size <= self._largest and time.time_ns() - changed > _SETTLED_NS:
            with self._lock:
                self._kept.pop(place, None)
                self._kept[place] = (now, content)
                while len(self._kept) > self._most:
                    del self._kept[next(iter(self._kept))]
        return content
