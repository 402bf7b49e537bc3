"""Train: configure an experiment and start it, or watch the current run learn."""

from pages.app import state
from pages.app.runs import run_actions, runs_access
from pages.train import configure, live

run_id = state.current_run_id()
if run_id is None:
    run_actions.forget_way_back()
    configure.page()
else:
    live.page(runs_access.store().get(run_id))
