"""Which run a page shows: the current one where the page can use it, else the newest that fits."""

from __future__ import annotations

from collections.abc import Callable

from pages.ui import runs_access, state, visitors
from tfm_core.config import Experiment
from tfm_core.runs.run import Run


def current() -> Run | None:
    """Return the current run, fitting or not; None where there is none or it is damaged."""
    run_id = state.current_run_id()
    run = None if run_id is None else runs_access.store().get(run_id)
    return None if run is None or run.problem is not None else run


def found(fits: Callable[[Experiment], bool]) -> Run | None:
    """Return the current run where it fits, else the newest finished one that does, else any."""
    run = current()
    if run is not None and fits(run.experiment):
        return run
    ready = able(fits)
    finished = [run for run in ready if run.status.state == "finished"]
    return next(iter([*finished, *ready]), None)


def able(fits: Callable[[Experiment], bool]) -> list[Run]:
    """Return the runs with weights that fit, the newest first."""
    return [
        run
        for run in visitors.at_hand()
        if run.problem is None and run.has_checkpoint and fits(run.experiment)
    ]
