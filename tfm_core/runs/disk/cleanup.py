"""Remove what killed processes left behind, and runs that were deleted long ago.

Only what nothing touched for a while is removed, no file of a run with a worker, and each folder is
renamed first, which only one process can do.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from tfm_core.data.user_data import sets
from tfm_core.runs.disk import trash
from tfm_core.runs.queue import run_lock
from tfm_core.runs.record import weights
from tfm_core.runs.status import read_status

QUIET_SECONDS = 600.0
"""Files untouched for so long are no longer being written."""

EVERY_SECONDS = 600.0
"""How often a server sweeps."""

DRAFT = ".new-"
"""How a run's folder is called until it is whole."""

TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}|\.tmp\w{6}|.+\.new")
"""A file that is written beside its place: by ``atomic``, by safetensors, as a checkpoint."""

SWEEPS = "sweeps"
"""The folder of the sweeps among the runs; no run is called that (see ``runs.run.ID``)."""

_BESIDE_RUNS = (sets.FOLDER, SWEEPS)
_WORKER_PARTS = (
    "snapshots",
    weights.FOLDER,
    run_lock.FOLDER,
    "checkpoints/last",
    "checkpoints/best",
)
_PARTS = ("", "requests", *_WORKER_PARTS)


def clean_up(root: Path) -> int:
    """Remove what is left over in a folder of runs; return how many things went. Never raises."""
    n_swept = sum(
        trash.empty(folder, older_than=trash.KEPT_SECONDS)
        for folder in (root, *(root / name for name in _BESIDE_RUNS))
    )
    for path in leftovers(root):
        is_folder = path.is_dir() and not path.is_symlink()
        n_swept += trash.remove(path) if is_folder else _unlink(path)
    return n_swept


def leftovers(root: Path) -> Iterator[Path]:
    """Yield unfinished folders and files that nothing will finish. Never raises."""
    for folder in (root, *(root / name for name in _BESIDE_RUNS)):
        yield from _gone_or_new(folder)
        yield from _gone_or_new(folder / trash.FOLDER)
    for entry in _entries(root):
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            yield from _half_files(Path(entry.path))


def _gone_or_new(folder: Path) -> Iterator[Path]:
    """Yield what was being removed, or made, in a folder."""
    for entry in _entries(folder):
        is_left = entry.name.startswith((DRAFT, trash.GOING))
        if is_left and _is_quiet(entry.path):
            yield Path(entry.path)


def _half_files(folder: Path) -> list[Path]:
    """Return the half files of a run that no worker holds."""
    left = [
        Path(entry.path)
        for part in _PARTS
        for entry in _entries(folder / part)
        if TEMPORARY.fullmatch(entry.name)
        and entry.is_file(follow_symlinks=False)
        and _is_quiet(entry.path)
    ]
    return [] if not left or read_status(folder).is_active else left


def _is_quiet(path: str) -> bool:
    """Return whether nothing at a path or below it changed for a while.

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


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


_OWN = re.compile(r"\.(status|best|probe)\..+")
"""Beside them lie names and requests, which others may just be writing."""


def clean_run(folder: Path) -> None:
    """Remove what earlier workers of a run left half done. Only its holder may. Never raises."""
    left = [path for path in _files(folder) if _OWN.fullmatch(path.name)]
    for part in _WORKER_PARTS:
        left += _files(folder / part)
    for path in left:
        if TEMPORARY.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def _files(folder: Path) -> Iterator[Path]:
    """Yield what lies in a folder, unless a link leads to it."""
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            yield from map(folder.joinpath, os.listdir(folder))
