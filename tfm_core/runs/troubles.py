"""Why a waiting run could not begin when it was its turn: known to the process whose queue tried.

It is kept in memory: a full disk, the first of such reasons, takes no file that says so.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Trouble:
    sentence: str
    until: float


_troubles: dict[Path, _Trouble] = {}


def why(folder: Path) -> str | None:
    """Return why the run in a folder could not begin, in a sentence, or None."""
    trouble = _troubles.get(folder)
    return None if trouble is None else trouble.sentence


def note(folder: Path, sentence: str, *, seconds: float) -> bool:
    """Note it, and leave the run alone for so long; say whether that is news."""
    is_news = why(folder) != sentence
    _troubles[folder] = _Trouble(sentence, time.monotonic() + seconds)
    return is_news


def is_left_alone(folder: Path) -> bool:
    """Say whether a run isn't tried again yet."""
    trouble = _troubles.get(folder)
    return trouble is not None and time.monotonic() < trouble.until


def forget_all_but(root: Path, waiting: Collection[str]) -> None:
    """Forget the troubles of a root's runs that wait no more."""
    for folder in list(_troubles):
        if folder.parent == root and folder.name not in waiting:
            _troubles.pop(folder, None)


def forget(folder: Path) -> None:
    """Forget the trouble of a run that could begin."""
    _troubles.pop(folder, None)
