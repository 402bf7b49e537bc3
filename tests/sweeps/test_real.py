"""One real sweep: a queue, a driver and workers, each doing what it does in the app."""

from __future__ import annotations

import pytest

from tests.runs.waiting import tiny, wait_until
from tests.sweeps.made import RATES, a_plan, trials_of
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.sweeps.driver import Driver


def test_a_sweep_trains_its_runs_and_knows_what_they_came_to(store: RunStore) -> None:
    queue = RunQueue(store, max_running=2, warm=1, limits=Limits())
    driver = Driver(queue)
    plan = a_plan(base=tiny(20), space=(RATES,), search="tpe", max_runs=3)
    queue.start()
    driver.start()
    try:
        sweep = driver.sweeps.create(plan)
        driver.wake()
        wait_until(lambda: sweep.plan().state == "finished", "the sweep ends")
    finally:
        driver.close()
        queue.close()

    trials = trials_of(sweep)
    assert [trial.state for trial in trials] == ["complete"] * 3
    for trial in trials:
        run = store.get(trial.run_id or "")
        assert run.status.state == "finished"
        assert run.experiment.training.learning_rate == trial.values["training.learning_rate"]
        assert trial.value == pytest.approx(run.curves().validation.last("loss"))
        assert (run.labels.group, run.meta.device) == (plan.name, "cpu")
