"""Runs of other servers in the hands of this one: looked at, asked of, taken over.

While a run trains, its server alone changes it; others ask (pause, stop). Once no worker has it,
whoever wants to change it, to go on with it say, takes it over: the store lets one do so.
"""

from __future__ import annotations

import logging
import secrets
import time
from pathlib import Path

from tfm_core.runs import settings
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.remote import follow, ownership, sync_state
from tfm_core.runs.remote.manifest import CALLS
from tfm_core.runs.remote.publish import Publisher, homes
from tfm_core.runs.remote.storage import AlreadyExists, Remote, StoreUnavailable, remote_of
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

_PATIENCE_SECONDS = 30.0  # somebody may just be fetching it
_LOOK_SECONDS = 5.0  # a page waits for it

logger = logging.getLogger(__name__)


class Busy(StudentError):
    """The run is another server's, and can't be had just now."""


def fetch_large(folder: Path) -> None:
    """Fetch what is large of another server's run, where somebody opens it. Never raises.

    What cannot be fetched now comes later, and the mirror says why.
    """
    url = settings.read().runs_url if ownership.is_theirs(folder) else None
    if url is None or not follow.note_asked(folder):
        return
    try:
        remote = remote_of(url)
        with sync_state.alone(folder.parent, remote, folder.name, patience=_LOOK_SECONDS):
            follow.follow(folder.parent, remote, folder.name, large=True)
    except (StoreUnavailable, OSError) as error:
        logger.warning("The run %s could not be fetched: %s", folder.name, error)


def request(folder: Path, kind: RequestKind) -> None:
    """Ask the worker of another server's run for something. Raises Away."""
    name = f"{time.time_ns():020d}-{secrets.token_hex(3)}-{kind}"
    _store(folder).write(f"{CALLS}/{folder.name}/{name}", b"{}")


def take_over(folder: Path) -> None:
    """Take a run over, unless it is this server's already. Raises Busy, Away and OSError.

    A run that trains stays where it trains.
    """
    if not ownership.is_theirs(folder):
        return
    remote, root = _store(folder), folder.parent
    try:
        with sync_state.alone(root, remote, folder.name, patience=_PATIENCE_SECONDS):
            _take(root, folder, remote)
    except BlockingIOError:
        raise Busy("This run is being fetched. Try again later.") from None


def _take(root: Path, folder: Path, remote: Remote) -> None:
    _fetch(root, folder, remote)
    if read_status(folder).is_alive:
        raise Busy(
            "This run trains on another server ({host}). Stop it first.",
            host=ownership.theirs(folder),
        )
    told = follow.manifest_of(remote, folder.name)
    home = max([1 if told is None else told.home, *homes(remote, folder.name)]) + 1
    try:
        remote.create(f"{CALLS}/{folder.name}/home-{home:06d}", ownership.server(root).encode())
    except AlreadyExists:
        raise Busy("Another server is taking over this run.") from None
    _fetch(root, folder, remote)  # what its server published meanwhile
    known = sync_state.load(root, remote, folder.name)
    known.home, known.stamps, known.wanted, known.digest = home, {}, {}, ""
    for name in known.files:
        seen = sync_state.stamp(folder / name)
        if seen is not None:
            known.stamps[name] = seen
    sync_state.save(root, remote, folder.name, known)
    ownership.set_mine(folder)
    Publisher(root, folder, remote).small()


def _fetch(root: Path, folder: Path, remote: Remote) -> None:
    if not follow.follow(root, remote, folder.name, large=True):
        raise Busy("This run cannot be fetched now. Try again later.")


def _store(folder: Path) -> Remote:
    url = settings.read().runs_url
    if url is None:
        raise Busy(
            "This run is on another server ({host}). Set TFM_RUNS_URL to change it.",
            host=ownership.theirs(folder),
        )
    return remote_of(url)
