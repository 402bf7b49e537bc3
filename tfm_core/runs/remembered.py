"""What was read of a file, kept for as long as it is the same file.

A list of a thousand runs is drawn again at every press, and next to nothing of it has changed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

Read = TypeVar("Read")

_SETTLED_NS = 2 * 10**9
"""A file that changed just now is not remembered: it could change again within one tick of the
clock that stamps files, in the room of the same inode, and be taken for what it was."""


class Remembered(Generic[Read]):
    """Asks ``read`` for what is in a file, once for each time that the file changed.

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
        """Return what stands in a file of a folder now."""
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
