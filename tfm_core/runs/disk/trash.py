"""The trash, and the cleanup of what killed processes left behind.

Deleted runs stay in the trash for a day, or until the host's limit needs their space. It is a
folder among the runs, so that a run moves in and out by one rename, which needs no space on a full
disk and succeeds in one process only. A folder that is removed for good is renamed first, too, so
nobody restores a partial run.

The cleanup removes only what nothing touched for a while, and no file of a run with a worker.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfm_core.data.user_data import sets
from tfm_core.disk import rename
from tfm_core.runs import snapshots
from tfm_core.runs.disk import locks
from tfm_core.runs.disk.failures import is_disk_full
from tfm_core.runs.status import read_status

FOLDER = ".trash"
KEPT_SECONDS = 24 * 3600.0
"""How long a deleted run can be restored, unless the host's limit needs its space."""

GOING = ".gone-"
"""The prefix of a folder that is being removed; its rest is cleaned up later."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deleted:
    """A run in the trash. deleted: Unix time."""

    folder: Path
    deleted: float


def put(root: Path, run_id: str) -> None:
    """Move a run to the trash. Raises OSError.

    If a full disk keeps the trash from being made, the run is removed for good.
    """
    try:
        (root / FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        if not is_disk_full(error):
            raise
        remove(root / run_id)
        return
    os.utime(root / run_id)  # its age counts from now
    rename(root / run_id, root / FOLDER / run_id)


def restore(root: Path, run_id: str) -> bool:
    """Restore a run from the trash; return whether it was there. Raises OSError."""
    try:
        rename(root / FOLDER / run_id, root / run_id)
    except FileNotFoundError:
        return False
    return True


def expires_at(root: Path, run_id: str) -> float | None:
    """Return until when (Unix time) a run can be restored, or None. Never raises.

    Sooner, if the host's limit needs its space.
    """
    try:
        return (root / FOLDER / run_id).stat().st_mtime + KEPT_SECONDS
    except OSError:
        return None


def deleted(root: Path) -> list[Deleted]:
    """Return the runs in the trash, oldest deletion first. Never raises."""
    runs = list[Deleted]()
    with contextlib.suppress(OSError), os.scandir(root / FOLDER) as entries:
        runs.extend(
            Deleted(Path(entry.path), entry.stat().st_mtime)
            for entry in entries
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )
    return sorted(runs, key=lambda run: run.deleted)


def empty(root: Path, *, older_than: float = 0.0) -> int:
    """Remove runs deleted at least so many seconds ago; return how many. Never raises."""
    old = [run for run in deleted(root) if time.time() - run.deleted >= older_than]
    return sum(remove(run.folder) for run in (old if older_than else deleted(root)))


def remove(folder: Path) -> bool:
    """Remove a folder for good; return whether this call did it. Never raises."""
    going = folder.with_name(f"{GOING}{secrets.token_hex(6)}")
    try:
        rename(folder, going)
    except FileNotFoundError:  # another process was quicker
        return False
    except OSError as error:
        logger.warning("A folder could not be removed: %s", error)
        return False
    if going.is_symlink():
        going.unlink(missing_ok=True)
    shutil.rmtree(going, ignore_errors=True)
    return True


QUIET_SECONDS = 600.0
"""Files untouched for so long are no longer being written."""

CLEAN_UP_SECONDS = 600.0
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
    snapshots.WEIGHTS,
    locks.CLAIMS,
    "checkpoints/last",
    "checkpoints/best",
)
_PARTS = ("", "requests", *_WORKER_PARTS)


def clean_up(root: Path) -> int:
    """Remove what is left over in a folder of runs; return how many things went. Never raises."""
    n_swept = sum(
        empty(folder, older_than=KEPT_SECONDS)
        for folder in (root, *(root / name for name in _BESIDE_RUNS))
    )
    for path in leftovers(root):
        is_folder = path.is_dir() and not path.is_symlink()
        n_swept += remove(path) if is_folder else _unlink(path)
    return n_swept


def leftovers(root: Path) -> Iterator[Path]:
    """Yield unfinished folders and files that nothing will finish. Never raises."""
    for folder in (root, *(root / name for name in _BESIDE_RUNS)):
        yield from _gone_or_new(folder)
        yield from _gone_or_new(folder / FOLDER)
    for entry in _entries(root):
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            yield from _half_files(Path(entry.path))


def _gone_or_new(folder: Path) -> Iterator[Path]:
    """Yield what was being removed, or made, in a folder."""
    for entry in _entries(folder):
        is_left = entry.name.startswith((DRAFT, GOING))
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
