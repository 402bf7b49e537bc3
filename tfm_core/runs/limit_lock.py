"""Locks under which a limit is checked and what counts towards it is made, as one step.

A limit on what a folder holds is exact only if nobody adds to it between the count and the
addition: requests of one server come from many threads, and several servers may share a folder.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tfm_core.runs import locks, tickets
from tfm_core.sentences import StudentError

Limited = Literal["runs", "sets", "sweeps", "published"]

PATIENCE_SECONDS = 30.0
"""How long to wait for the others: each holds a lock while it counts and writes a few files."""

_held = threading.local()


@contextlib.contextmanager
def limit_lock(root: Path, limited: Limited) -> Iterator[None]:
    """Keep other threads and servers from adding to what is limited in a folder of runs.

    A thread that has the lock may take it again. Where no file can be locked (a full disk) nothing
    is. Raises StudentError, in a sentence, where another keeps the lock for too long.
    """
    path = root / tickets.FOLDER / f"{limited}.lock"
    paths: set[Path] = _held.__dict__.setdefault("paths", set())
    if path in paths:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = locks.lock(path, patience=PATIENCE_SECONDS)
    except BlockingIOError:
        raise StudentError(
            "Too many visitors start or add something at this moment; try again."
        ) from None
    except OSError:
        yield
        return
    paths.add(path)
    try:
        yield
    finally:
        paths.discard(path)
        locks.unlock(lock)
