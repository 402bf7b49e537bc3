"""How far a run's folder and the store agree, as this server knows it; kept for the next start."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfm_core.disk import remove
from tfm_core.runs import locks
from tfm_core.runs.atomic import read_json, write_bytes
from tfm_core.runs.elsewhere import places
from tfm_core.runs.elsewhere.manifest import Entry, entry_of, values_of
from tfm_core.runs.elsewhere.remote import Remote

Stamp = tuple[int, ...]


@dataclass(slots=True)
class Record:
    """What is known of one run.

    home: as in the manifest, 0 before it was published. tag: of the manifest that was seen last.

    files: what of the run is the same here and there. stamps: how their files looked here.
    gone: objects that no manifest names any more, and since when (Unix time). wanted: what the
    manifest of another server's run lists.
    """

    home: int = 0
    tag: str = ""
    digest: str = ""
    files: dict[str, Entry] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    wanted: dict[str, Entry] = field(default_factory=dict)


def load(root: Path, remote: Remote, run_id: str) -> Record:
    """Return what is known of a run; nothing where that cannot be read."""
    values = read_json(_path(root, remote, run_id))
    try:
        return Record() if values is None else _record(values)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Record()


def save(root: Path, remote: Remote, run_id: str, record: Record) -> None:
    """Keep what is known of a run. Raises OSError."""
    values = {
        "home": record.home,
        "tag": record.tag,
        "digest": record.digest,
        "files": {name: values_of(entry) for name, entry in record.files.items()},
        "stamps": record.stamps,
        "gone": record.gone,
        "wanted": {name: values_of(entry) for name, entry in record.wanted.items()},
    }
    write_bytes(_path(root, remote, run_id), json.dumps(values).encode())


def forget(root: Path, remote: Remote, run_id: str) -> None:
    """Forget a run. Raises OSError."""
    remove(_path(root, remote, run_id))


def known(root: Path, remote: Remote) -> list[str]:
    """Return the ids of the runs of which something is known. Raises OSError."""
    names = os.listdir(places.of_store(root, remote.key))
    return [name.removesuffix(".json") for name in names if name.endswith(".json")]


@contextlib.contextmanager
def alone(root: Path, remote: Remote, run_id: str, *, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes from publishing or fetching a run. Raises BlockingIOError, OSError."""
    lock = locks.lock(_path(root, remote, run_id).with_suffix(".lock"), patience=patience)
    try:
        yield
    finally:
        locks.unlock(lock)


def stamp(path: Path) -> Stamp | None:
    """Return what changes when a file does, None where there is none."""
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino)


def _path(root: Path, remote: Remote, run_id: str) -> Path:
    return places.of_store(root, remote.key) / f"{run_id}.json"


def _record(values: dict[str, Any]) -> Record:
    return Record(
        int(values["home"]),
        str(values["tag"]),
        str(values["digest"]),
        {name: entry_of(one) for name, one in values["files"].items()},
        {name: tuple(one) for name, one in values["stamps"].items()},
        {name: float(since) for name, since in values["gone"].items()},
        {name: entry_of(one) for name, one in values["wanted"].items()},
    )
