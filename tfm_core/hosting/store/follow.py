"""Fetch a run of another server from the store into a folder here that reads like any other.

Small files are fetched for every run, so that lists and curves are complete; large ones when
somebody opens the run, for as long as somebody looks at it. The status comes last.
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
"""How long after somebody opened a run its large files are fetched as they come."""

_CHECKPOINT = "checkpoints/last/checkpoint.safetensors"
_opened_at: dict[Path, float] = {}


def note_opened(folder: Path) -> bool:
    """Note that somebody looks at a run; return whether nobody had for a while."""
    before = _opened_at.get(folder)
    _opened_at[folder] = time.monotonic()
    return before is None or _opened_at[folder] - before > WATCHED_SECONDS


def is_watched(folder: Path) -> bool:
    """Return whether somebody looked at a run a moment ago."""
    return time.monotonic() - _opened_at.get(folder, -WATCHED_SECONDS) < WATCHED_SECONDS


def manifest_of(remote: Remote, run_id: str) -> Manifest | None:
    """Return a run's manifest, or None. Raises StoreUnavailable."""
    content = remote.read(f"{INDEX}/{run_id}.json")
    return None if content is None else manifest.read(content)


def follow(root: Path, remote: Remote, run_id: str, *, large: bool, tag: str = "") -> bool:
    """Update a run; return whether all of it is here. Raises StoreUnavailable and OSError.

    Only with its lock (``sync_state.alone``). tag: of the manifest in the list.
    """
    state = sync_state.load(root, remote, run_id)
    found = manifest_of(remote, run_id)
    if found is None:
        return False
    folder = root / run_id
    if found.is_deleted:
        if ownership.is_theirs(folder):
            _move_to_trash(folder)
        state.files, state.wanted, state.tag = {}, {}, tag
        sync_state.save(root, remote, run_id, state)
        return True
    if not folder.is_dir():
        state.files = {}  # the files here are gone
    state.home, state.wanted = found.home, dict(found.files)
    is_whole = _fetched(root, remote, run_id, state, found, large)
    state.tag = tag if is_whole else ""
    sync_state.save(root, remote, run_id, state)
    return is_whole


def _fetched(
    root: Path, remote: Remote, run_id: str, state: sync_state.Record, found: Manifest, large: bool
) -> bool:
    """Fetch what is new into the run's folder, which lists show once it is complete."""
    folder = root / run_id
    if folder.is_dir():
        ownership.set_theirs(folder, found.host, has_checkpoint=_CHECKPOINT in found.files)
        return _fill(folder, run_id, remote, state, found, large)
    draft = root / f"{DRAFT}{run_id}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        if not _fill(draft, run_id, remote, state, found, large):
            return False
        ownership.set_theirs(folder, found.host, has_checkpoint=_CHECKPOINT in found.files)
        rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _fill(
    folder: Path,
    run_id: str,
    remote: Remote,
    state: sync_state.Record,
    found: Manifest,
    large: bool,
) -> bool:
    names = [name for name in sorted(found.files) if LARGE.fullmatch(name)] if large else []
    names += [name for name in reversed(SMALL) if name in found.files]
    for name in names:
        entry = found.files[name]
        if entry != state.files.get(name):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            is_new = name not in state.files
            if not _written(path, f"{FILES}/{run_id}", remote, entry, is_new=is_new):
                return False
            state.files[name] = entry
    for name in [name for name in state.files if name not in found.files]:
        remove(folder / name)
        del state.files[name]
    for name, path in list(large_files(folder)):
        if name not in state.files:  # from when this server had the run
            remove(path)
    return True


def _written(path: Path, at: str, remote: Remote, entry: Entry, *, is_new: bool) -> bool:
    """Write a file as it is in the store; False if an object is gone, such as for a newer one."""
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
    """Append what a file here lacks; one that is longer here is replaced."""
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
    """Move a run that is gone from the store to the trash. Raises OSError."""
    _move_to_trash(root / run_id)
    sync_state.forget(root, remote, run_id)


def _move_to_trash(folder: Path) -> None:
    if folder.is_dir():
        trash.remove(folder.parent / trash.FOLDER / folder.name)  # from an earlier time
        trash.put(folder.parent, folder.name)
