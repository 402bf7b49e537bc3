"""The waiting line: one empty file a waiting run, in a folder that every server of it shares.

A ticket says that a run waits; who may start it is decided by its claim. So a ticket is removed
last, by whoever started the run or finds that it no longer waits.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FOLDER = ".queue"
_DIGITS = 20
_LAST = 10**_DIGITS - 1


def add(root: Path, run_id: str) -> None:
    """Put a run at the end of the line, unless it is in it. Raises OSError."""
    names = _names(root)
    if any(name.partition(".")[2] == run_id for name in names):
        return
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    # behind the last one, also where the clock was set back since it came
    number = max([time.time_ns(), *(_number(name) + 1 for name in names)])
    number = min(number, _LAST)
    (root / FOLDER / f"{number:0{_DIGITS}d}.{run_id}").touch()


def waiting(root: Path) -> list[str]:
    """Return the ids of the waiting runs, first come first. Never raises."""
    return list(dict.fromkeys(name.partition(".")[2] for name in _names(root)))


def remove(root: Path, run_id: str) -> bool:
    """Take a run out of the line; say whether this call did it."""
    is_done = False
    for name in _names(root):
        if name.partition(".")[2] == run_id:
            try:
                (root / FOLDER / name).unlink()
            except OSError:
                continue
            is_done = True
    return is_done


def _number(name: str) -> int:
    return int(name.partition(".")[0])


def _names(root: Path) -> list[str]:
    try:
        names = os.listdir(root / FOLDER)
    except OSError:
        return []
    return sorted(name for name in names if _is_ticket(name))


def _is_ticket(name: str) -> bool:
    number, dot, _ = name.partition(".")
    return bool(dot) and number.isascii() and number.isdigit() and len(number) == _DIGITS
