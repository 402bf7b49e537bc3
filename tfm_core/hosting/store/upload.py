"""Upload a run from its folder to the store, in an order in which nothing is named too early.

Large files go first, then the manifest that names them. Small ones are read status first and events
last, so that a state is never newer than the events before it; the final state waits for all large
files.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tfm_core import disk
from tfm_core.data.own.sets import VOCABULARY
from tfm_core.hosting.store import sync_state
from tfm_core.hosting.store.manifest import (
    CALLS,
    FILES,
    GROWING,
    INDEX,
    LARGE,
    SMALL,
    TAIL,
    Entry,
    Manifest,
)
from tfm_core.hosting.store.storage import Remote, StoreUnavailable, remote_of
from tfm_core.runs.disk import ownership
from tfm_core.runs.disk.atomic import read_json, write_bytes
from tfm_core.runs.process import requests
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.status import ALIVE

EVERY_SECONDS = 2.0
"""How often a worker uploads what is new."""

LONGEST_WAIT = 15.0
"""The longest wait between two tries while the store is unavailable."""

FLUSH_SECONDS = 60.0
"""How long a worker that is done tries to upload the rest; then its server does."""

_KEPT_SECONDS = 60.0  # of an object that no manifest names any more: it may still be read
_FOLDERS = ("checkpoints/best", "checkpoints/last", "snapshots", "weights")
_HOME = re.compile(r"home-(\d{6})", re.ASCII)

logger = logging.getLogger(__name__)


class Lost(Exception):
    """Another server took the run over."""


class Uploader:
    """Uploads one run, with its lock (``sync_state.alone``), from two threads."""

    def __init__(self, root: Path, folder: Path, remote: Remote) -> None:
        """Take a run's folder, which may be in the trash. Raises OSError."""
        self.root, self.folder, self.remote = root, folder, remote
        self.id = folder.name
        self.record = sync_state.load(root, remote, self.id)
        self._lock = threading.Lock()

    def upload_large(self) -> None:
        """Upload the large files that changed. Raises StoreUnavailable and OSError."""
        there = dict(large_files(self.folder))
        for name, path in there.items():
            seen = sync_state.stamp(path)
            if seen is not None and seen != self.record.stamps.get(name):
                self._keep(name, self._uploaded(name, path), seen)
        for name in [name for name in self.record.files if LARGE.fullmatch(name)]:
            if name not in there:
                self._keep(name, None)

    def write_manifest(self, *, is_deleted: bool = False) -> None:
        """Write the manifest if anything changed. Raises StoreUnavailable and OSError."""
        with self._lock:
            large = {name: e for name, e in self.record.files.items() if LARGE.fullmatch(name)}
        for name in SMALL:
            path = self.folder / name
            seen = sync_state.stamp(path)
            if seen is None:
                self._keep(name, None)
            elif seen != self.record.stamps.get(name) and not self._waits(name):
                entry_of = self._grown if name in GROWING else self._whole
                with contextlib.suppress(FileNotFoundError):
                    self._keep(name, entry_of(name, path), seen)
        if self._waits("status.json") and "status.json" not in self.record.files:
            return
        small = {name: self.record.files[name] for name in SMALL if name in self.record.files}
        made = Manifest(
            max(1, self.record.home),
            ownership.server(self.root),
            this_host(),
            is_deleted,
            small | large,
        )
        content = made.content()
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.record.digest:
            self.remote.write(f"{INDEX}/{self.id}.json", content)
            with self._lock:
                self.record.digest, self.record.home = digest, made.home
                sync_state.save(self.root, self.remote, self.id, self.record)
        if self._clear():
            with self._lock:
                sync_state.save(self.root, self.remote, self.id, self.record)

    def fetch_requests(self) -> None:
        """Fetch other servers' requests. Raises Lost, StoreUnavailable and OSError."""
        for name in sorted(self.remote.listing(f"{CALLS}/{self.id}")):
            home = _HOME.fullmatch(name)
            if home is not None and int(home[1]) > max(1, self.record.home):
                raise Lost
            if requests.FORM.fullmatch(name):
                (self.folder / "requests").mkdir(exist_ok=True)
                write_bytes(self.folder / "requests" / name, b"")
                self.remote.remove(f"{CALLS}/{self.id}/{name}")

    def drop_requests(self) -> None:
        """Remove requests to a worker that is gone. Raises StoreUnavailable."""
        names = self.remote.listing(f"{CALLS}/{self.id}")
        self.remote.remove(*(f"{CALLS}/{self.id}/{n}" for n in names if requests.FORM.fullmatch(n)))

    def _waits(self, name: str) -> bool:
        """Return whether a final state must wait for large files."""
        if name != "status.json":
            return False
        if (read_json(self.folder / name) or {}).get("state") in ALIVE:
            return False
        return any(
            sync_state.stamp(path) != self.record.stamps.get(large)
            for large, path in large_files(self.folder)
        )

    def _whole(self, name: str, path: Path) -> Entry:
        content = path.read_bytes()
        if len(content) <= TAIL:
            return Entry((), content)
        return Entry((self._object(name, content),))

    def _grown(self, name: str, path: Path) -> Entry:
        parts = self.record.files.get(name, Entry()).parts
        done = sum(size for _name, size in parts)
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < done:  # it was rewritten
                parts, done = (), 0
            file.seek(done)
            content = file.read()
        if len(content) <= TAIL:
            return Entry(parts, content)
        return Entry((*parts, self._object(name, content)))

    def _object(self, name: str, content: bytes) -> tuple[str, int]:
        made = _new_name(name)
        self.remote.write(f"{FILES}/{self.id}/{made}", content)
        return made, len(content)

    def _uploaded(self, name: str, path: Path) -> Entry:
        """Upload a file as it is now: a worker replaces it, but never changes it.

        Through a hard link, or a copy if a link would keep the worker from replacing it.
        """
        aside = (
            ownership.of_store(self.root, self.remote.key) / f"{self.id}.{secrets.token_hex(4)}.up"
        )
        try:
            try:
                if disk.OPEN_IS_HELD:
                    shutil.copyfile(path, aside)
                else:
                    os.link(path, aside)
            except OSError:
                shutil.copyfile(path, aside)
            made, size = _new_name(name), aside.stat().st_size
            self.remote.upload(aside, f"{FILES}/{self.id}/{made}")
        finally:
            aside.unlink(missing_ok=True)
        return Entry(((made, size),))

    def _keep(self, name: str, entry: Entry | None, seen: sync_state.Stamp = ()) -> None:
        """Note what the store has of a file, in one step: the other thread reads it."""
        with self._lock:
            old = self.record.files.get(name, Entry())
            if entry is None:
                self.record.files.pop(name, None)
                self.record.stamps.pop(name, None)
            else:
                self.record.files[name], self.record.stamps[name] = entry, seen
            for part, _size in set(old.parts) - set(() if entry is None else entry.parts):
                self.record.gone[part] = time.time()

    def _clear(self) -> bool:
        """Remove old unnamed objects; return whether there were any. Raises StoreUnavailable."""
        now = time.time()
        with self._lock:
            gone = self.record.gone.items()
            old = [part for part, since in gone if not 0 <= now - since < _KEPT_SECONDS]
        self.remote.remove(*(f"{FILES}/{self.id}/{part}" for part in old))
        with self._lock:
            for part in old:
                self.record.gone.pop(part, None)
        return bool(old)


class _LiveUpload:
    """Uploads a run while it trains: large files in one thread, the rest in another."""

    def __init__(self, folder: Path, url: str, lost: Callable[[], None]) -> None:
        self.folder, self._url, self._lost = folder, url, lost
        self._closed, self._is_lost = threading.Event(), False
        self._lock, self._is_locked = contextlib.ExitStack(), False
        self._uploader: Uploader | None = None
        self._troubles: dict[str, str | None] = {}
        self._threads = [
            threading.Thread(target=self._work, args=(part,), name=part, daemon=True)
            for part in ("small", "large")
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Upload the rest, for up to FLUSH_SECONDS."""
        self._closed.set()
        for thread in self._threads:
            thread.join()
        end, wait = time.monotonic() + FLUSH_SECONDS, 0.5
        while not self._is_lost and not self._try("large", "small", "end"):
            if time.monotonic() + wait >= end:
                logger.warning("Run %s is not uploaded yet.", self.folder.name)
                break
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        self._lock.close()

    def _work(self, part: str) -> None:
        wait = 0.0
        while not self._closed.wait(wait) and not self._is_lost:
            wait = EVERY_SECONDS if self._try(part) else min(max(1.0, 2 * wait), LONGEST_WAIT)

    def _try(self, *parts: str) -> bool:
        """Do some parts; return whether that worked."""
        part = parts[0]
        try:
            uploader = self._uploader_for(part)
            if uploader is not None:
                self._upload(uploader, parts)
            self._note(part, None)
            return uploader is not None
        except Lost:
            self._is_lost = True
            self._lost()
        except StoreUnavailable as error:
            self._note(part, error.sentence)
        except OSError as error:  # a full disk here, which the training reports too
            logger.warning("Run %s could not be uploaded: %s", self.folder.name, error)
        except Exception:  # the next try may succeed
            logger.exception("Run %s could not be uploaded.", self.folder.name)
        return False

    def _upload(self, uploader: Uploader, parts: tuple[str, ...]) -> None:
        if "small" in parts:
            uploader.fetch_requests()
        if "large" in parts:
            uploader.upload_large()
        if "small" in parts:
            uploader.write_manifest()
        if "end" in parts:
            uploader.drop_requests()

    def _uploader_for(self, part: str) -> Uploader | None:
        """Return the run's uploader, or None while another process has its lock."""
        if self._uploader is None and (part == "small" or self._closed.is_set()):
            root, remote = self.folder.parent, remote_of(self._url)
            if not self._is_locked:
                try:
                    self._lock.enter_context(sync_state.alone(root, remote, self.folder.name))
                except BlockingIOError:
                    return None
                self._is_locked = True
            uploader = Uploader(root, self.folder, remote)
            uploader.drop_requests()  # what an earlier worker did not live to answer
            self._uploader = uploader
        return self._uploader

    def _note(self, part: str, sentence: str | None) -> None:
        before = next(filter(None, self._troubles.values()), None)
        self._troubles[part] = sentence
        now = next(filter(None, self._troubles.values()), None)
        if now is not None or before is not None:
            ownership.note_trouble(self.folder.parent, now)
        if now is not None and now != before:
            logger.warning("%s", now)


@contextlib.contextmanager
def uploading(folder: Path, url: str, lost: Callable[[], None]) -> Iterator[None]:
    """Publish a run while it trains, and the rest of it at the end.

    lost: called from a thread where another server took the run over.
    """
    live = _LiveUpload(folder, url, lost)
    live.start()
    try:
        yield
    finally:
        live.close()


def homes(remote: Remote, run_id: str) -> list[int]:
    """Return the numbers of a run's takeovers. Raises StoreUnavailable."""
    found = map(_HOME.fullmatch, remote.listing(f"{CALLS}/{run_id}"))
    return [int(one[1]) for one in found if one is not None]


def large_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the large files of a run's folder with their names in it."""
    kept = (f"{VOCABULARY}/{path.name}" for path in sorted((folder / VOCABULARY).glob("*")))
    for part in (*_FOLDERS, *kept):
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(folder / part)):
                path = folder / part / name
                if LARGE.fullmatch(f"{part}/{name}") and path.is_file() and not path.is_symlink():
                    yield f"{part}/{name}", path


def _new_name(name: str) -> str:
    return f"{name.replace('/', '~')}.{secrets.token_hex(8)}"
