"""Suspects of Find the bug: runs whose settings are hidden until the bug is found or shown.

Whatever would name the bug (settings, code, parameters, a comparison) asks ``is_hidden`` first.
"""

from __future__ import annotations

import dataclasses

import streamlit as st

from tfm_core.inspect.bugs.bugs import bug_of
from tfm_core.runs.run import Run

_REVEALED = "revealed-suspects"


def is_hidden(run: Run) -> bool:
    """Return whether the run is a suspect whose bug this session has not found yet."""
    return run.meta.is_suspect and run.id not in _revealed()


def reveal(run: Run, *, may_change: bool) -> None:
    """Hide nothing of a run any more: in this session, and for everybody where one may change it.

    Raises OSError.
    """
    _revealed().add(run.id)
    if may_change and run.meta.is_suspect:
        run.write_meta(dataclasses.replace(run.meta, is_suspect=False))


def is_pair(healthy: Run, suspect: Run) -> bool:
    """Return whether a suspect is the twin of a run, so that the two make a round."""
    if healthy.problem is not None or suspect.problem is not None:
        return False
    return bug_of(healthy.experiment, suspect.experiment) is not None


def _revealed() -> set[str]:
    found: set[str] = st.session_state.setdefault(_REVEALED, set())
    return found
