"""Sweeping up what killed processes left in a folder of runs, and what was deleted long ago.

Safe with several servers on the folder: only what nobody has touched for a while goes, no file of a
run that has a worker, and whatever goes is renamed first, which only one of them can do.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from tfm_core.runs import trash
from tfm_core.runs.status import read_status

QUIET_SECONDS = 600.0
"""What was not touched for so long is not being written any more."""

EVERY_SECONDS = 600.0
"""How often a server sweeps."""

DRAFT = ".new-"
"""How a run's folder is called until it is whole."""

BESIDE = re.compile(r"\..+\.[0-9a-f]{8}|\.tmp\w{6}|.+\.new")
"""A file that is written beside its place: by ``atomic``, by safetensors, as a checkpoint."""

_PARTS = ("", "requests", "snapshots", "claims", "checkpoints/last", "checkpoints/best")


def sweep(root: Path) -> int:
    """Remove what is left over in a folder of runs; return how many things went. Never raises."""
    n_swept = trash.empty(root, older_than=trash.KEPT_SECONDS)
    for folder in (root, root / trash.FOLDER):
        for entry in _entries(folder):
            is_left = entry.name.startswith((DRAFT, trash.GOING))
            if is_left and _is_quiet(entry.path):
                n_swept += trash.remove(Path(entry.path))
    for entry in _entries(root):
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            n_swept += _sweep_run(Path(entry.path))
    return n_swept


def _sweep_run(folder: Path) -> int:
    """Remove the half files of a run that no worker holds."""
    left = [
        entry.path
        for part in _PARTS
        for entry in _entries(folder / part)
        if BESIDE.fullmatch(entry.name)
        and entry.is_file(follow_symlinks=False)
        and _is_quiet(entry.path)
    ]
    if not left or read_status(folder).is_active:
        return 0
    return sum(_unlink(path) for path in left)


def _is_quiet(path: str) -> bool:
    """Say whether nothing at a path or below it changed for a while.

    By the time of change too: a copied file brings the time at which its original was written.
    """
    latest = time.time() - QUIET_SECONDS
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    if max(facts.st_mtime, facts.st_ctime) > latest:
        return False
    if not stat.S_ISDIR(facts.st_mode):  # a link is not followed
        return True
    return all(_is_quiet(entry.path) for entry in _entries(path))


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return
