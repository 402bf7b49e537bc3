"""The store that a server shares with others: runs of theirs looked at, asked of and taken over.

While a run trains, its server alone changes it; others ask (pause, stop). Once no worker has it,
whoever wants to change or resume it takes it over: the store lets one server do so.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from tfm_core.hosting.store import follow, sync_state, upload
from tfm_core.hosting.store.manifest import CALLS
from tfm_core.hosting.store.mirror import Mirror
from tfm_core.hosting.store.storage import AlreadyExists, StoreUnavailable, remote_of
from tfm_core.runs.disk import ownership
from tfm_core.runs.shared_store import Busy, SharedStore
from tfm_core.runs.status import read_status

_PATIENCE_SECONDS = 30.0  # another process may be fetching it
_LOOK_SECONDS = 5.0  # a page waits for it

logger = logging.getLogger(__name__)


class Store(SharedStore):
    """A store of runs at an address of fsspec; see ``runs.shared_store.SharedStore``."""

    def __init__(self, url: str) -> None:
        """Take its address; it is not asked yet."""
        self._url = url

    def fetch_large(self, folder: Path) -> None:
        """Fetch the large files of a run that somebody opens. Never raises.

        What cannot be fetched now comes later, and the mirror says why.
        """
        if not follow.note_opened(folder):
            return
        try:
            remote = remote_of(self._url)
            with sync_state.alone(folder.parent, remote, folder.name, patience=_LOOK_SECONDS):
                follow.follow(folder.parent, remote, folder.name, large=True)
        except (StoreUnavailable, OSError) as error:
            logger.warning("The run %s could not be fetched: %s", folder.name, error)

    def request(self, folder: Path, kind: str) -> None:
        """Ask the worker of a run for something. Raises StoreUnavailable."""
        name = f"{time.time_ns():020d}-{secrets.token_hex(3)}-{kind}"
        remote_of(self._url).write(f"{CALLS}/{folder.name}/{name}", b"{}")

    def take_over(self, folder: Path) -> None:
        """Make a run this server's, unless it trains. Raises Busy, StoreUnavailable and OSError."""
        remote, root = remote_of(self._url), folder.parent
        try:
            with sync_state.alone(root, remote, folder.name, patience=_PATIENCE_SECONDS):
                self._take_over(folder)
        except BlockingIOError:
            raise Busy("This run is being fetched. Try again later.") from None

    def _take_over(self, folder: Path) -> None:
        remote, root = remote_of(self._url), folder.parent
        self._fetch(folder)
        if read_status(folder).is_alive:
            raise Busy(
                "This run trains on another server ({host}). Stop it first.",
                host=ownership.theirs(folder),
            )
        manifest = follow.manifest_of(remote, folder.name)
        home = max([manifest.home if manifest else 1, *upload.homes(remote, folder.name)]) + 1
        try:
            content = ownership.server(root).encode()
            remote.create(f"{CALLS}/{folder.name}/home-{home:06d}", content)
        except AlreadyExists:
            raise Busy("Another server is taking over this run.") from None
        self._fetch(folder)  # what its server uploaded meanwhile
        known = sync_state.load(root, remote, folder.name)
        known.home, known.stamps, known.wanted, known.digest = home, {}, {}, ""
        for name in known.files:
            stamp = sync_state.stamp(folder / name)
            if stamp is not None:
                known.stamps[name] = stamp
        sync_state.save(root, remote, folder.name, known)
        ownership.set_mine(folder)
        upload.Uploader(root, folder, remote).write_manifest()

    def _fetch(self, folder: Path) -> None:
        remote = remote_of(self._url)
        if not follow.follow(folder.parent, remote, folder.name, large=True):
            raise Busy("This run cannot be fetched now. Try again later.")

    def uploading(self, folder: Path, lost: Callable[[], None]) -> AbstractContextManager[None]:
        """Publish a run while it trains, and the rest of it at the end."""
        return upload.uploading(folder, self._url, lost)

    def mirror(self, root: Path) -> Mirror:
        """Return the mirror of a folder of runs, not started."""
        return Mirror(root, self._url)

    def examined(self) -> tuple[Literal["ok", "warning", "problem"], str, str | None]:
        """Write into the store, twice where it should take one, read it, and remove it."""
        name, content = f"tried/{secrets.token_hex(8)}", secrets.token_bytes(64)
        try:
            remote = remote_of(self._url)
            remote.create(name, content)
            is_same = remote.read(name) == content
            is_exclusive = False
            try:
                remote.create(name, b"")
            except AlreadyExists:
                is_exclusive = True
            remote.remove(name)
        except StoreUnavailable as error:
            return "problem", str(error), None
        if not is_same:
            return "problem", "The store of runs gives back another content.", None
        if not is_exclusive:
            words = "The store of runs takes two writes where it should take one."
            return "warning", words, "Let one server at a time take a run over."
        return "ok", "The store of runs takes writes, and exclusive ones.", None
