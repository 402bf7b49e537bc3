"""The folder of runs: whether it takes what a training writes, and how much room there is."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tfm_core.doctor.finding import Finding, Level, count
from tfm_core.runs.disk import cleanup, locks, quota
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.store import RunStore
from tfm_core.sentences import in_bytes

SHORT_BYTES = 2**30
"""Free room below which some dozen runs fill the disk."""

_TRIED = b"\0" * 4096


def check_folder(store: RunStore) -> Finding:
    """Write into the folder, and lock what was written."""
    root = store.root
    if not root.is_dir():
        return Finding("folder", "ok", f"{root} is not there yet; the first run makes it.")
    try:
        with tempfile.TemporaryDirectory(dir=root, prefix=cleanup.DRAFT) as folder:
            file = Path(folder) / "tried"
            file.write_bytes(_TRIED)
            lock = locks.lock(file)
            is_locked = locks.is_locked(file)
            locks.unlock(lock)
    except OSError as error:
        words = f"{root} takes no file. {refusal(error)}"
        return Finding("folder", "problem", words)
    if not is_locked:
        words = f"{root} can be written, but its file system has no locks."
        return Finding("folder", "warning", words, "Let one server at a time use it.")
    return Finding("folder", "ok", f"{root} can be written, and its locks work.")


def check_disk(store: RunStore) -> Finding:
    """Say how much room is free, and what takes the rest."""
    runs = [run for run in store.list() if not run.meta.recorded]
    found = quota.disk_use(store.root, runs)
    words = (
        f"{in_bytes(found.free)} free; {in_bytes(found.runs)} in {count(found.n_runs, 'run')}, "
        f"{in_bytes(found.deleted)} in the trash ({found.n_deleted:,})."
    )
    if found.free < SHORT_BYTES:
        level: Level = "problem" if found.free < len(_TRIED) else "warning"
        return Finding("disk", level, words, "Do: delete runs; what is in the trash goes first.")
    return Finding("disk", "ok", words)
