"""Undo: what this browser deleted can be brought back, from any tab of it.

A run that was deleted just now leaves its place in the list to the button that brings it back, so
that the list does not move under the pointer; one deleted earlier has a line below the list.
"""

from __future__ import annotations

from pages.ui import run_list, runs_access, state, visitors
from tfm_core.runs.run import Run


def among(runs: list[Run]) -> list[Run]:
    """Return the runs, with those deleted since the page was opened in their old places."""
    shown = list(runs)
    gone = set(state.gone_runs())
    for run in _deleted():
        if run.id in gone:
            later = [at for at, other in enumerate(shown) if _is_older(other, run)]
            shown.insert(min(later, default=len(shown)), run)
    return shown


def gone() -> set[str]:
    return {one.id for one in _deleted()}


def line() -> None:
    gone = set(state.gone_runs())
    earlier = [run for run in _deleted() if run.id not in gone]
    if earlier:
        run_list.gone(earlier[0])


def _deleted() -> tuple[Run, ...]:
    return runs_access.store().deleted_by(visitors.visitor().owner)


def _is_older(other: Run, run: Run) -> bool:
    return other.meta.recorded or other.meta.created < run.meta.created
