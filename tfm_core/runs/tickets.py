"""The waiting line: one empty file a waiting run, in a folder that every server of it shares.

Whoever removes a ticket has the right to start its run; two can never remove the same one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FOLDER = ".queue"


def add(root: Path, run_id: str) -> None:
    """Put a run at the end of the line, unless it is in it. Raises OSError."""
    if run_id in waiting(root):
        return
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    (root / FOLDER / f"{time.time_ns():020d}.{run_id}").touch()


def waiting(root: Path) -> list[str]:
    """Return the ids of the waiting runs, first come first. Never raises."""
    return [name.partition(".")[2] for name in _names(root)]


def remove(root: Path, run_id: str) -> bool:
    """Take a run out of the line; say whether this call did it."""
    for name in _names(root):
        if name.partition(".")[2] == run_id:
            try:
                (root / FOLDER / name).unlink()
            except OSError:
                return False
            return True
    return False


def _names(root: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(root / FOLDER) if "." in name)
    except OSError:
        return []
