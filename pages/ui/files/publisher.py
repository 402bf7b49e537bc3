"""The published runs of this server, and a thread that keeps their files up to date.

A folder is locked by the server that updates it, so two servers on one store do not write the same
files; if one stops, the other takes over.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pages.ui.runs import runs_access
from tfm_core.hosting.published.folder import EVERY, STATE, Folder
from tfm_core.hosting.published.shelf import Published, Shelf, shelf
from tfm_core.runs import settings
from tfm_core.runs.disk import locks
from tfm_core.runs.store import RunNotFound, RunStore

if TYPE_CHECKING:
    from pages.ui.files.publication import Publication

POLLS = 100
"""Polls per second about one run from all pages together; with more pages each polls less often."""
SELDOMEST = 30.0  # seconds
_ENDED = 10.0  # seconds between two looks at a run that is over: it may go on
_PATIENCE = 15.0  # seconds that a press waits for the first files, on a busy machine

logger = logging.getLogger(__name__)


@dataclass
class _Kept:
    """A publication that this process updates. due, looked: of ``time.monotonic``."""

    publication: Publication
    lock: int
    due: float = 0.0
    every: float = EVERY
    polls: int = 0
    looked: float = 0.0


class Publisher:
    """Keep the folders of a shelf up to date."""

    def __init__(self, store: RunStore, shown: Shelf) -> None:
        self.store, self.shelf = store, shown
        self._kept: dict[str, _Kept] = {}
        self._wake, self._is_over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._wake.set()
        self._thread.join()
        for token in list(self._kept):
            self._forget(token)

    def look(self) -> None:
        """Update soon, because something was published."""
        self._wake.set()

    def turn(self) -> None:
        """Update the folders that are due; log errors and try again later."""
        published = {run.token: run for run in self.shelf.list()}
        for token in self._kept.keys() - published.keys():
            self._forget(token)
        for run in published.values():
            try:
                self._update(run)
            except RunNotFound:
                self.shelf.unpublish(run.run_id)
            except (ValueError, OSError) as error:
                logger.warning("A published run could not be brought up to date: %s", error)
                if run.token in self._kept:
                    self._kept[run.token].due = time.monotonic() + _ENDED

    def _go_on(self) -> None:
        while not self._is_over.is_set():
            try:
                self.turn()
            except Exception:  # the next turn may be luckier; the app goes on without this one
                logger.exception("Published runs could not be brought up to date")
            self._wake.wait(EVERY / 2)
            self._wake.clear()

    def _update(self, published: Published) -> None:
        from pages.ui.files.publication import Publication  # late: most servers publish nothing

        run = self.store.get(published.run_id)
        if published.token not in self._kept:
            try:
                lock = locks.lock(published.lock)
            except BlockingIOError:
                return  # another server does it
            try:
                self._kept[published.token] = _Kept(
                    Publication(run, Folder(published.folder)), lock
                )
            except BaseException:
                locks.unlock(lock)
                raise
        entry, now = self._kept[published.token], time.monotonic()
        if now < entry.due:
            return
        polls = self.shelf.polls[published.token]
        if entry.looked:
            entry.every = pace((polls - entry.polls) / (now - entry.looked), entry.every)
        entry.polls, entry.looked = polls, now
        entry.publication.run = run  # a fresh one knows its name of now
        goes_on = entry.publication.update(every=entry.every)
        entry.due = now + (EVERY if goes_on else _ENDED)

    def _forget(self, token: str) -> None:
        locks.unlock(self._kept.pop(token).lock)


def pace(polls: float, every: float) -> float:
    """Return the polling interval in seconds, EVERY to SELDOMEST.

    polls: how often a second they did, all together, when they asked after ``every`` seconds.
    """
    watchers = polls * every
    return round(min(SELDOMEST, max(EVERY, watchers / POLLS)), 1)


def publisher() -> Publisher:
    return _publisher(_root())


def close() -> None:
    _publisher(_root()).close()
    _publisher.clear()


def address(run_id: str) -> str | None:
    """Return the path of a run's public page, or None if it is not published."""
    published = publisher().shelf.of(run_id)
    return None if published is None else f"live/{published.token}/"


def publish(run_id: str) -> None:
    """Publish a run, and wait briefly for its first files.

    Raises LimitReached, in a sentence, and OSError.
    """
    published = publisher().shelf.publish(run_id, most=settings.read().max_published)
    publisher().look()
    end = time.monotonic() + _PATIENCE
    while not (published.folder / STATE).is_file() and time.monotonic() < end:
        time.sleep(0.02)


def unpublish(run_id: str) -> None:
    """Remove a run's address and its files."""
    publisher().shelf.unpublish(run_id)


def _root() -> Path:
    return settings.read().runs_dir.resolve()


@st.cache_resource(show_spinner=False)
def _publisher(root: Path) -> Publisher:
    started = Publisher(runs_access.store(), shelf(root))
    started.start()
    return started
