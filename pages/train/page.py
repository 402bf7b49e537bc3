"""Train: configure an experiment and start it, or watch the current run learn."""

from pages.train import configure, live
from pages.ui import runs_access, state, way_back

run_id = state.current_run_id()
if run_id is None:
    way_back.forget()
    configure.page()
else:
    live.page(runs_access.store().get(run_id))
