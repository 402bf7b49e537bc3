"""Following a run of another server: from the store into a folder here, which reads as any other.

What is small is fetched for every run, so that lists and curves are whole; what is large when
somebody opens the run, and for as long as somebody looks at it. The status comes last.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path

from tfm_core.disk import BINARY, remove, rename, replace
from tfm_core.hosting.store import manifest, sync_state
from tfm_core.hosting.store.manifest import FILES, GROWING, INDEX, LARGE, SMALL, Entry, Manifest
from tfm_core.hosting.store.storage import Remote
from tfm_core.hosting.store.upload import large_files
from tfm_core.runs.disk import ownership, trash
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.disk.cleanup import DRAFT

WATCHED_SECONDS = 60.0
"""How long after somebody asked for a run its large files are fetched as they come."""

_CHECKPOINT = "checkpoints/last/checkpoint.safetensors"
_asked: dict[Path, float] = {}


def note_asked(folder: Path) -> bool:
    """Note that somebody looks at a run; say whether nobody had for a while."""
    before = _asked.get(folder)
    _asked[folder] = time.monotonic()
    return before is None or _asked[folder] - before > WATCHED_SECONDS


def is_asked(folder: Path) -> bool:
    """Say whether somebody looked at a run a moment ago."""
    return time.monotonic() - _asked.get(folder, -WATCHED_SECONDS) < WATCHED_SECONDS


def manifest_of(remote: Remote, run_id: str) -> Manifest | None:
    """Return what the store says of a run; None where it says nothing. Raises Away."""
    content = remote.read(f"{INDEX}/{run_id}.json")
    return None if content is None else manifest.read(content)


def follow(root: Path, remote: Remote, run_id: str, *, large: bool, tag: str = "") -> bool:
    """Bring a run up to date; say whether all of it is here. Raises Away and OSError.

    Only who holds its lock may (``record.alone``). tag: of the manifest in the list.
    """
    known = sync_state.load(root, remote, run_id)
    told = manifest_of(remote, run_id)
    if told is None:
        return False
    folder = root / run_id
    if told.is_deleted:
        if ownership.is_theirs(folder):
            _put_aside(folder)
        known.files, known.wanted, known.tag = {}, {}, tag
        sync_state.save(root, remote, run_id, known)
        return True
    if not folder.is_dir():
        known.files = {}  # whatever was here is gone
    known.home, known.wanted = told.home, dict(told.files)
    is_whole = _fetched(root, remote, run_id, known, told, large)
    known.tag = tag if is_whole else ""
    sync_state.save(root, remote, run_id, known)
    return is_whole


def _fetched(
    root: Path, remote: Remote, run_id: str, known: sync_state.Record, told: Manifest, large: bool
) -> bool:
    """Fetch what is new into the run's folder, which no list shows before it is whole."""
    folder = root / run_id
    if folder.is_dir():
        ownership.set_theirs(folder, told.host, has_checkpoint=_CHECKPOINT in told.files)
        return _fill(folder, run_id, remote, known, told, large)
    draft = root / f"{DRAFT}{run_id}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        if not _fill(draft, run_id, remote, known, told, large):
            return False
        ownership.set_theirs(folder, told.host, has_checkpoint=_CHECKPOINT in told.files)
        rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _fill(
    folder: Path, run_id: str, remote: Remote, known: sync_state.Record, told: Manifest, large: bool
) -> bool:
    names = [name for name in sorted(told.files) if LARGE.fullmatch(name)] if large else []
    names += [name for name in reversed(SMALL) if name in told.files]
    for name in names:
        entry = told.files[name]
        if entry != known.files.get(name):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            is_new = name not in known.files
            if not _written(path, f"{FILES}/{run_id}", remote, entry, is_new=is_new):
                return False
            known.files[name] = entry
    for name in [name for name in known.files if name not in told.files]:
        remove(folder / name)
        del known.files[name]
    for name, path in list(large_files(folder)):
        if name not in known.files:  # of when this server had the run
            remove(path)
    return True


def _written(path: Path, at: str, remote: Remote, entry: Entry, *, is_new: bool) -> bool:
    """Write a file as the store has it; False where an object is gone, for a newer one say."""
    if path.name in GROWING and not is_new:
        return _grown(path, at, remote, entry)
    if path.name in SMALL:
        contents = [remote.read(f"{at}/{name}") for name, _size in entry.parts]
        whole = b"".join(content or b"" for content in contents) + entry.tail
        if len(whole) != entry.size:
            return False
        write_bytes(path, whole)
        return True
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        ((name, size),) = entry.parts
        if not remote.fetch(f"{at}/{name}", beside) or beside.stat().st_size != size:
            return False
        replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return True


def _grown(path: Path, at: str, remote: Remote, entry: Entry) -> bool:
    """Append what a file here lacks; one that is longer here is written anew."""
    try:
        have = path.stat().st_size
    except OSError:
        have = 0
    if have > entry.size:
        return _written(path, at, remote, entry, is_new=True)
    more, start = b"", 0
    for name, size in entry.parts:
        if start + size > have:
            content = remote.read(f"{at}/{name}")
            if content is None or len(content) != size:
                return False
            more += content[max(0, have - start) :]
        start += size
    more += entry.tail[max(0, have - start) :]
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | BINARY, 0o644)
    try:
        while more:
            more = more[os.write(file, more) :]
    finally:
        os.close(file)
    return True


def vanished(root: Path, remote: Remote, run_id: str) -> None:
    """Put a run of another server aside that the store has no more. Raises OSError."""
    _put_aside(root / run_id)
    sync_state.forget(root, remote, run_id)


def _put_aside(folder: Path) -> None:
    if folder.is_dir():
        trash.remove(folder.parent / trash.FOLDER / folder.name)  # of an earlier time
        trash.put(folder.parent, folder.name)
