"""The run store, queue and sweeps of this process, and the curves of runs, read once for all.

The singletons live in Streamlit's resource cache, which survives module reloads of the development
server, so there is never a second queue. Suspects of Find the bug are runs whose settings stay
hidden until the bug is found or shown: check ``is_hidden`` before you show any.
"""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from tfm_core import settings
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.runs.thinned import ThinnedReader
from tfm_core.sentences import N_
from tfm_core.studies.bugs import bug_of

if TYPE_CHECKING:
    from tfm_core.runs.queue.run_queue import RunQueue
    from tfm_core.sweeps.driver import Driver


STARTUP_DELAY = 5.0
"""Seconds after startup that belong to the first visitor, before background work begins."""


def store() -> RunStore:
    """Return the store at ``TFM_RUNS_DIR`` (default ``runs/``)."""
    return _store(_root())


def open_run(run_id: str) -> Run:
    """Return a run for a page that shows its settings.

    Raises RunNotFound where there is none, or one whose settings are hidden (``suspects``).
    """
    run = store().get(run_id)
    if is_hidden(run):
        raise RunNotFound(N_("“{name}” stays hidden until you find its bug.", name=run.meta.name))
    return run


def queue() -> RunQueue:
    return _queue(_root())


def sweeps() -> Driver:
    return _sweeps(_root())


def close_queue() -> None:
    """Stop the sweeps, the queue and its idle workers; running workers go on."""
    _sweeps(_root()).close()
    _sweeps.clear()
    _queue(_root()).close()
    _queue.clear()


def curves(run: Run) -> Curves:
    """Return the curves of a run so far; reads only new events."""
    lock, reader = _reader(str(run.folder))
    with lock:
        return reader.read()


@st.cache_resource(show_spinner=False, max_entries=256)
def _reader(folder: str) -> tuple[threading.Lock, ThinnedReader]:
    """Return the reader of a run's events that all sessions share, and its lock."""
    return threading.Lock(), ThinnedReader(Path(folder))


def _root() -> str:
    return str(settings.read().runs_dir.resolve())


@st.cache_resource(show_spinner=False)
def _store(root: str) -> RunStore:
    return RunStore(Path(root))


@st.cache_resource(show_spinner=False)
def _queue(root: str) -> RunQueue:
    from tfm_core.runs.queue.run_queue import RunQueue

    started = RunQueue(_store(root), startup_delay=STARTUP_DELAY)
    started.start()
    return started


@st.cache_resource(show_spinner=False)
def _sweeps(root: str) -> Driver:
    from tfm_core.sweeps.driver import Driver

    started = Driver(_queue(root))
    started.start()
    return started


_REVEALED = "revealed-suspects"


def is_hidden(run: Run) -> bool:
    """Return whether a run is a suspect whose bug this session has not found."""
    return run.meta.is_suspect and run.id not in _revealed()


def reveal(run: Run, *, may_change: bool) -> None:
    """Reveal a suspect: in this session, and for everyone if ``may_change``.

    Raises OSError.
    """
    _revealed().add(run.id)
    if may_change and run.meta.is_suspect:
        run.write_meta(dataclasses.replace(run.meta, is_suspect=False))


def is_round(healthy: Run, suspect: Run) -> bool:
    """Return whether a healthy run and a suspect make a round of the game."""
    if healthy.problem is not None or suspect.problem is not None:
        return False
    return bug_of(healthy.experiment, suspect.experiment) is not None


def _revealed() -> set[str]:
    revealed: set[str] = st.session_state.setdefault(_REVEALED, set())
    return revealed
