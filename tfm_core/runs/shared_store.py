"""The store that servers share (TFM_RUNS_URL): what runs ask of it, and where it is found.

``tfm_core.hosting.store`` fills the protocols. It is loaded by name, and only where there is a
store; without one, every question here has a plain answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal, Protocol, cast

from tfm_core.runs import settings
from tfm_core.runs.disk import ownership
from tfm_core.sentences import N_, StudentError

_STORE = "tfm_core.hosting.store.shared_store:Store"

TAKEN_OVER = N_("Another server took over this run.")


class Busy(StudentError):
    """The run belongs to another server and cannot be changed now."""


class Mirror(Protocol):
    """Keeps a folder of runs and the store alike, from its own thread.

    trouble: why it cannot, in a sentence, or None.
    """

    trouble: str | None

    def start(self) -> None:
        """Begin. Call it once."""

    def close(self) -> None:
        """End, once the current turn is done."""

    def turn(self) -> str | None:
        """Publish and fetch once; return why that failed, in a sentence, or None."""


class SharedStore(Protocol):
    """A store of runs. Folders are those of runs that belong to another server."""

    def fetch_large(self, folder: Path) -> None:
        """Fetch the large files of a run that somebody opens. Never raises."""

    def request(self, folder: Path, kind: str) -> None:
        """Ask the worker of a run for something. Raises StudentError."""

    def take_over(self, folder: Path) -> None:
        """Make a run this server's. Raises Busy, another StudentError or OSError."""

    def uploading(self, folder: Path, lost: Callable[[], None]) -> AbstractContextManager[None]:
        """Publish a run while it trains. lost: called where another server took it over."""

    def mirror(self, root: Path) -> Mirror:
        """Return the mirror of a folder of runs, not started."""

    def examined(self) -> tuple[Literal["ok", "warning", "problem"], str, str | None]:
        """Try the store; return a level, what was found, and what would help."""


def shared_store() -> SharedStore | None:
    """Return the store that the environment names, or None."""
    url = settings.read().runs_url
    return None if url is None else cast("SharedStore", resolve_name(_STORE)(url))


def fetch_large(folder: Path) -> None:
    """Fetch the large files of another server's run that somebody opens. Never raises."""
    if ownership.is_theirs(folder) and (store := shared_store()) is not None:
        store.fetch_large(folder)


def request(folder: Path, kind: str) -> None:
    """Ask the worker of another server's run for something. Raises StudentError."""
    _store_of(folder).request(folder, kind)


def take_over(folder: Path) -> None:
    """Make a run this server's, if it is not yet. Raises Busy, another StudentError or OSError."""
    if ownership.is_theirs(folder):
        _store_of(folder).take_over(folder)


def uploading(folder: Path, lost: Callable[[], None]) -> AbstractContextManager[None]:
    """Upload a run while it trains, if there is a store, and the rest of it at the end.

    lost: called from a thread where another server took the run over.
    """
    store = shared_store()
    return nullcontext() if store is None else store.uploading(folder, lost)


def mirror(root: Path) -> Mirror | None:
    """Return the mirror of a folder of runs, not started; None without a store."""
    store = shared_store()
    return None if store is None else store.mirror(root)


@contextmanager
def mirroring(root: Path) -> Iterator[None]:
    """Keep a folder of runs in sync with the store meanwhile, if there is one."""
    if (started := mirror(root)) is None:
        yield
        return
    started.start()
    try:
        yield
    finally:
        started.close()


def _store_of(folder: Path) -> SharedStore:
    store = shared_store()
    if store is None:
        raise Busy(
            "This run is on another server ({host}). Set TFM_RUNS_URL to change it.",
            host=ownership.theirs(folder),
        )
    return store
