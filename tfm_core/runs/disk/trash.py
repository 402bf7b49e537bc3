"""The trash: deleted runs stay in it for a day, or until the host's limit needs their space.

It is a folder among the runs, so that a run moves in and out by one rename, which needs no space on
a full disk and succeeds in one process only. What is removed for good is renamed first, too, so
nobody restores a partial run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tfm_core.disk import rename
from tfm_core.runs.disk.failures import is_disk_full

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
    old = [one for one in deleted(root) if time.time() - one.deleted >= older_than]
    return sum(remove(one.folder) for one in (old if older_than else deleted(root)))


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
