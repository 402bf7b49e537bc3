"""Which run the page opens on: it is never empty while there is a run to look into."""

from __future__ import annotations

from pages.ui import runs_access, shown_run, state, visitors
from tfm_core.runs.run import Run

FIRST_RECORDED = "recorded-korean"


def run_to_open() -> Run | None:
    """Return the current run, else the visitor's newest with snapshots, else a recorded one.

    None only where nothing at all can be looked into.
    """
    run_id = state.current_run_id()
    if run_id is not None:
        return runs_access.store().get(run_id)
    seen = [run for run in visitors.listed() if not run.problem and run.snapshot_steps()]
    return shown_run.first_to_show(seen, FIRST_RECORDED)
