"""What this server knows of a run in its folder and in the store, kept for the next start."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tfm_core.disk import remove
from tfm_core.hosting.store.manifest import Entry
from tfm_core.hosting.store.storage import Remote
from tfm_core.runs.disk import locks, ownership
from tfm_core.runs.disk.atomic import read_json, write_bytes
from tfm_core.stored import Stored, WrongValue

Stamp = tuple[int, ...]


@dataclass(slots=True)
class Record:
    """The state of one run.

    home: as in the manifest, 0 before the first upload. tag: of the last manifest seen. files:
    those that are the same here and there. stamps: of these files here. gone: objects that no
    manifest names any more, and since when (Unix time). wanted: the files in another server's
    manifest.
    """

    home: int = 0
    tag: str = ""
    digest: str = ""
    files: dict[str, Entry] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    wanted: dict[str, Entry] = field(default_factory=dict)


_STORED = Stored(Record, "the record")


def load(root: Path, remote: Remote, run_id: str) -> Record:
    """Return the state of a run, empty if it cannot be read."""
    values = read_json(_path(root, remote, run_id))
    try:
        return Record() if values is None else _STORED.read(values)
    except WrongValue:
        return Record()


def save(root: Path, remote: Remote, run_id: str, record: Record) -> None:
    """Write the state of a run. Raises OSError."""
    content = json.dumps(_STORED.plain(record)).encode()
    write_bytes(_path(root, remote, run_id), content)


def forget(root: Path, remote: Remote, run_id: str) -> None:
    """Forget a run. Raises OSError."""
    remove(_path(root, remote, run_id))


def known(root: Path, remote: Remote) -> list[str]:
    """Return the ids of all runs with a state. Raises OSError."""
    names = os.listdir(ownership.of_store(root, remote.key))
    return [name.removesuffix(".json") for name in names if name.endswith(".json")]


@contextlib.contextmanager
def alone(root: Path, remote: Remote, run_id: str, *, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes from uploading or fetching a run. Raises BlockingIOError, OSError."""
    lock = locks.lock(_path(root, remote, run_id).with_suffix(".lock"), patience=patience)
    try:
        yield
    finally:
        locks.unlock(lock)


def stamp(path: Path) -> Stamp | None:
    """Return a stamp that changes with a file, or None without one."""
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino)


def _path(root: Path, remote: Remote, run_id: str) -> Path:
    return ownership.of_store(root, remote.key) / f"{run_id}.json"
