"""The tickets of waiting runs: one empty file per run, in a folder beside the runs.

A ticket says that a run waits; its claim decides who may start it. So a ticket is removed last, by
the process that started the run or found that it no longer waits. Why a run could not start is kept
in memory, because a full disk, the most common reason, has no space for a file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.disk.locks import FOLDER
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

_DIGITS = 20
_LAST = 10**_DIGITS - 1
_APART, _SHARE = 10**9, 64
"""What leaves room for hundreds of tickets between two: each takes a share of what is left."""


class Unavailable(StudentError):
    """Nothing can train a run now; ``sentence`` says why. The run keeps waiting."""


def waits(folder: Path) -> bool:
    """Return whether a run with a ticket waits, also if its server was killed while starting it."""
    state = read_status(folder).state
    if state != "interrupted":
        return state == "queued"
    return (read_json(folder / "status.json") or {}).get("state") == "starting"


def add(root: Path, run_id: str, *, at: int | None = None) -> None:
    """Put a run into the line, unless it is in it. Raises OSError.

    at: how many waiting runs it stands behind; all of them by default.
    """
    names = _names(root)
    if any(name.partition(".")[2] == run_id for name in names):
        return
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    numbers = [_number(name) for name in names]
    if at is None or at >= len(numbers):
        # behind the last one, even if the clock was set back
        number = max([time.time_ns(), *(n + _APART for n in numbers)])
    else:
        low = numbers[at - 1] if at else numbers[at] - _APART
        number = low + (numbers[at] - low) // _SHARE
    (root / FOLDER / f"{min(number, _LAST):0{_DIGITS}d}.{run_id}").touch()


def waiting(root: Path) -> list[str]:
    """Return the ids of the waiting runs in their order. Never raises."""
    return list(dict.fromkeys(name.partition(".")[2] for name in _names(root)))


def remove(root: Path, run_id: str) -> bool:
    """Take a run out of the line; return whether this call did it."""
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


@dataclass(frozen=True, slots=True)
class _StartError:
    sentence: str
    until: float


_start_errors: dict[Path, _StartError] = {}


def start_error(folder: Path) -> str | None:
    """Return why the run in a folder could not begin, in a sentence, or None."""
    error = _start_errors.get(folder)
    return None if error is None else error.sentence


def note_start_error(folder: Path, sentence: str, *, seconds: float) -> bool:
    """Note it, and leave the run alone for so long; return whether that is news."""
    is_news = start_error(folder) != sentence
    _start_errors[folder] = _StartError(sentence, time.monotonic() + seconds)
    return is_news


def in_backoff(folder: Path) -> bool:
    """Return whether a run isn't tried again yet."""
    error = _start_errors.get(folder)
    return error is not None and time.monotonic() < error.until


def keep_start_errors(root: Path, waiting: Collection[str]) -> None:
    """Forget the troubles of a root's runs that wait no more."""
    for folder in list(_start_errors):
        if folder.parent == root and folder.name not in waiting:
            _start_errors.pop(folder, None)


def forget_start_error(folder: Path) -> None:
    """Forget the trouble of a run that could begin."""
    _start_errors.pop(folder, None)
