"""The mirror of a server: uploads what no worker does, and follows the runs of other servers."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tfm_core.hosting.store import follow, sync_state
from tfm_core.hosting.store.manifest import CALLS, FILES, INDEX
from tfm_core.hosting.store.storage import NOT_THERE, Remote, StoreUnavailable, remote_of
from tfm_core.hosting.store.upload import EVERY_SECONDS, LONGEST_WAIT, Uploader
from tfm_core.runs.disk import cleanup, ownership, trash
from tfm_core.runs.process import identity
from tfm_core.runs.queue import tickets
from tfm_core.runs.run import ID

_PARTS = ("", "snapshots", "weights", "checkpoints/last", "checkpoints/best")
_SUFFIX = ".json"
MARK = "store.json"
"""The object that marks a store of runs."""

logger = logging.getLogger(__name__)


class Mirror:
    """Keeps a folder of runs and a store in sync, from its own thread."""

    def __init__(self, root: Path, url: str) -> None:
        """Prepare; ``start`` begins."""
        self.root, self._url = root, url
        self.trouble: str | None = None
        self._is_prepared = False
        self._seen: dict[str, tuple[object, ...]] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)

    def start(self) -> None:
        """Begin. Call it once."""
        self._thread.start()

    def close(self) -> None:
        """End after the current turn; the next start uploads the rest."""
        self._closed.set()
        self._thread.join()

    def turn(self) -> str | None:
        """Upload and fetch once; return why that failed, in a sentence, or None."""
        try:
            self._turn()
            trouble: str | None = None
        except StoreUnavailable as error:
            trouble = error.sentence
            identity.WATCH.forget()  # a silent worker may just be out of reach
        if trouble is not None and trouble != self.trouble:
            logger.warning("%s", trouble)
        self.trouble = trouble
        return trouble

    def _work(self) -> None:
        wait = 0.0
        while not self._closed.wait(wait):
            try:
                is_well = self.turn() is None
            except Exception:  # a full disk here, a lost folder: the next turn may succeed
                logger.exception("The folder of runs and its store could not be synchronised.")
                is_well = False
            wait = EVERY_SECONDS if is_well else min(max(1.0, 2 * wait), LONGEST_WAIT)

    def _turn(self) -> None:
        remote = remote_of(self._url)
        self.root.mkdir(parents=True, exist_ok=True)
        listed = remote.listing(INDEX)
        tags = {n.removesuffix(_SUFFIX): tag for n, tag in listed.items() if n.endswith(_SUFFIX)}
        if not (self._is_prepared and listed):
            self._prepare(remote, is_empty=not listed)
        for run_id in ownership.removed(self.root):
            self._remove(remote, run_id)
            tags.pop(run_id, None)
        mine = dict(self._own_runs())
        trouble: StoreUnavailable | None = None
        for run_id, folder in mine.items():
            try:
                self._upload(remote, folder, tags.get(run_id))
            except StoreUnavailable as error:  # a full bucket can still be read
                trouble = trouble or error
        for run_id, tag in tags.items():
            is_mine = run_id in mine and not ownership.is_theirs(self.root / run_id)
            if not is_mine and _is_id(run_id):
                self._follow(remote, run_id, tag)
        for run_id in sync_state.known(self.root, remote):
            folder = self.root / run_id
            if run_id not in tags and ownership.is_theirs(folder):
                follow.vanished(self.root, remote, run_id)
        if trouble is not None:
            raise trouble

    def _prepare(self, remote: Remote, *, is_empty: bool) -> None:
        """Mark the store, and remove temporary files of killed uploads.

        Raises StoreUnavailable if it is suddenly empty, such as when it is not mounted.
        """
        if remote.read(MARK) is None:
            if is_empty and sync_state.known(self.root, remote):
                raise StoreUnavailable(NOT_THERE)
            remote.write(MARK, b"{}")
        if not self._is_prepared:
            latest = time.time() - cleanup.QUIET_SECONDS
            for path in ownership.of_store(self.root, remote.key).glob("*.up"):
                if path.lstat().st_ctime < latest:
                    path.unlink(missing_ok=True)
        self._is_prepared = True

    def _own_runs(self) -> Iterator[tuple[str, Path]]:
        """Yield this server's runs, including those in its trash."""
        for parent in (self.root / trash.FOLDER, self.root):
            with suppress(OSError):
                for name in os.listdir(parent):
                    if _is_id(name) and not ownership.is_theirs(self.root / name):
                        yield name, parent / name

    def _upload(self, remote: Remote, folder: Path, tag: str | None) -> None:
        """Upload a run that changed, unless its worker does."""
        stamp = (str(folder), _times(folder), tag)
        if tag is not None and self._seen.get(folder.name) == stamp:
            return
        try:
            with sync_state.alone(self.root, remote, folder.name):
                uploader = Uploader(self.root, folder, remote)
                manifest = follow.manifest_of(remote, folder.name)
                home, me = uploader.record.home, ownership.server(self.root)
                if manifest is not None and manifest.server != me and manifest.home >= home:
                    self._hand_over(remote, folder, manifest.host)
                    return
                if manifest is None or (manifest.server, manifest.home) != (me, home):
                    uploader.record.digest = ""  # the store has lost it, or it was slow
                uploader.upload_large()
                uploader.write_manifest(is_deleted=folder.parent.name == trash.FOLDER)
                if not uploader.record.gone:  # else there is more to do in a while
                    self._seen[folder.name] = stamp
        except BlockingIOError:
            return

    def _hand_over(self, remote: Remote, folder: Path, host: str) -> None:
        """Follow a run that another server took over."""
        tickets.remove(self.root, folder.name)
        sync_state.forget(self.root, remote, folder.name)
        ownership.set_theirs(self.root / folder.name, host)
        if folder.parent.name == trash.FOLDER:
            trash.remove(folder)

    def _follow(self, remote: Remote, run_id: str, tag: str) -> None:
        folder = self.root / run_id
        is_watched = follow.is_watched(folder)
        stamp = (tag, is_watched)
        if self._seen.get(run_id) == stamp:
            return
        state = sync_state.load(self.root, remote, run_id)
        is_whole = not is_watched or state.wanted == state.files
        if state.tag == tag and is_whole and (folder.is_dir() or not state.wanted):
            self._seen[run_id] = stamp
            return
        try:
            with sync_state.alone(self.root, remote, run_id):
                if ownership.is_removed(folder):  # a moment ago
                    return
                if follow.follow(self.root, remote, run_id, large=is_watched, tag=tag):
                    self._seen[run_id] = stamp
        except BlockingIOError:
            return

    def _remove(self, remote: Remote, run_id: str) -> None:
        """Remove a run that was deleted here for good from the store. Raises StoreUnavailable."""
        there = (self.root / run_id, self.root / trash.FOLDER / run_id)
        if _is_id(run_id) and not any(folder.is_dir() for folder in there):
            manifest = follow.manifest_of(remote, run_id)
            if manifest is not None and manifest.server == ownership.server(self.root):
                remote.remove(f"{INDEX}/{run_id}{_SUFFIX}")
                for part in (FILES, CALLS):
                    names = remote.listing(f"{part}/{run_id}")
                    remote.remove(*(f"{part}/{run_id}/{name}" for name in names))
            sync_state.forget(self.root, remote, run_id)
        ownership.forget_removed(self.root / run_id)


def _times(folder: Path) -> tuple[int, ...]:
    """Return times that change when a file is added, removed or replaced."""
    times = []
    for part in _PARTS:
        try:
            times.append(os.stat(f"{folder}{os.sep}{part}").st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _is_id(name: str) -> bool:
    return ID.fullmatch(name) is not None
