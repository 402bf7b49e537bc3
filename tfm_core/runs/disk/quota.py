"""Disk space: how much the runs take, how much is free, and what goes where the host set a limit.

The trash goes first, then the oldest finished runs of visitors. Never a recorded run, an active
one, or one that the command line made.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tfm_core.data.user_data import sets
from tfm_core.runs import snapshots
from tfm_core.runs.disk import trash
from tfm_core.runs.queue.limits import LimitReached
from tfm_core.runs.run import Run
from tfm_core.sentences import in_bytes
from tfm_core.settings import Settings

_BLOCK = 4096  # bytes that most disks allocate at once
_PARTS = ("", "snapshots", snapshots.WEIGHTS, "checkpoints/last", "checkpoints/best")


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes: what the runs take, what the trash takes beside them, what is free for more.

    sets: what the sets of one's own take, the removed ones too.
    """

    n_runs: int
    runs: int
    n_deleted: int
    deleted: int
    free: int
    sets: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The host's limits on all runs; None: no limit. disk: bytes, with the trash and data sets."""

    disk: int | None = None
    runs: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> Bounds:
        """Return what the host of a server decided."""
        return cls(disk=settings.max_disk, runs=settings.limits.max_runs)


def disk_use(root: Path, runs: Sequence[Run], bounds: Bounds | None = None) -> DiskUse:
    """Return how much space there is. Never raises.

    runs: those in ``root``. bounds: they limit the free space.
    """
    waiting = trash.deleted(root)
    taken = sum(folder_size(run.folder) for run in runs)
    deleted = sum(folder_size(deleted_run.folder) for deleted_run in waiting)
    free, own = _free(root), size_of_sets(root)
    if bounds is not None and bounds.disk is not None:
        free = min(free, max(0, bounds.disk - taken - deleted - own))
    return DiskUse(len(runs), taken, len(waiting), deleted, free, own)


def size_of_sets(root: Path) -> int:
    """Return the bytes of all data sets, including their trash. Never raises."""
    taken, folder_of_sets = 0, root / sets.FOLDER
    for folder in (folder_of_sets, folder_of_sets / trash.FOLDER):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            taken += sum(
                folder_size(Path(entry.path)) for entry in entries if entry.name != trash.FOLDER
            )
    return taken


def evict(root: Path, runs: Sequence[Run], bounds: Bounds, *, keeps: str, more: int = 0) -> int:
    """Delete runs until the rest fits the host's limits; return how many were deleted.

    runs: those in ``root``. keeps: the id of the run that needs the space; it counts. more: bytes
    of a data set that is about to be written. Runs above the number go to the trash; runs above the
    size are removed for good. Raises LimitReached, in a sentence, if not enough may be deleted;
    then nothing is.
    """
    if bounds == Bounds():
        return 0
    evictable = [
        run
        for run in runs
        if run.id != keeps
        and run.meta.owner is not None
        and not run.meta.recorded
        and not run.status.is_active
    ]
    oldest = sorted(evictable, key=lambda run: run.meta.created)
    n_too_many = 0 if bounds.runs is None else max(0, len(runs) - bounds.runs)
    if n_too_many > len(oldest):
        raise LimitReached(
            "The server is full ({most:,} runs). Delete one of yours.",
            most=bounds.runs,
        )
    n_gone, n_emptied = _n_too_large(root, runs, oldest, bounds, more + size_of_sets(root))
    for deleted_run in trash.deleted(root)[:n_emptied]:
        trash.remove(deleted_run.folder)
    going = oldest[: max(n_too_many, n_gone)]
    for number, run in enumerate(going):
        if number < n_gone:
            trash.remove(run.folder)
        else:
            trash.put(root, run.id)
    return len(going)


def _n_too_large(
    root: Path, runs: Sequence[Run], oldest: Sequence[Run], bounds: Bounds, beside: int
) -> tuple[int, int]:
    """Return how many runs to delete for their size, and how many of the trash before them.

    beside: bytes of data sets. Raises LimitReached.
    """
    if bounds.disk is None:
        return 0, 0
    in_trash = [folder_size(deleted_run.folder) for deleted_run in trash.deleted(root)]
    taken = sum(folder_size(run.folder) for run in runs)
    over = taken + sum(in_trash) + beside - bounds.disk
    n_emptied = n_gone = 0
    while over > 0 and n_emptied < len(in_trash):
        over -= in_trash[n_emptied]
        n_emptied += 1
    while over > 0 and n_gone < len(oldest):
        over -= folder_size(oldest[n_gone].folder)
        n_gone += 1
    if over > 0:
        raise LimitReached(
            "The server is full ({taken} of {most}). Delete a run.",
            most=in_bytes(bounds.disk),
            taken=in_bytes(taken + beside),
        )
    return n_gone, n_emptied


def folder_size(folder: Path) -> int:
    """Return the bytes of a run's folder on the disk. Never raises.

    Cached until a file is added, removed or replaced, which changes the time of its folder.
    """
    times = []
    for part in _PARTS:
        try:
            times.append(os.stat(f"{folder}{os.sep}{part}").st_mtime_ns)  # a Path takes longer
        except OSError:
            times.append(0)
    return _size(str(folder), tuple(times))


@lru_cache(maxsize=8192)
def _size(folder: str, times: tuple[int, ...]) -> int:
    taken = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    taken += _size.__wrapped__(entry.path, times)
                else:
                    n_bytes = entry.stat(follow_symlinks=False).st_size
                    taken += -(-n_bytes // _BLOCK) * _BLOCK
    except OSError:
        return taken
    return taken


def _free(root: Path) -> int:
    """Return the free bytes on the disk of a folder that need not exist yet."""
    for folder in (root, *root.parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return 0
