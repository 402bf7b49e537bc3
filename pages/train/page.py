"""Train: configure an experiment and start it, or watch the current run learn."""

from pages.train import configure, live
from pages.ui import state
from pages.ui.runs import run_actions, runs_access

run_id = state.current_run_id()
if run_id is None:
    run_actions.forget_way_back()
    configure.page()
else:
    live.page(runs_access.store().get(run_id))
