"""The driver of sweeps: trials are ordinary runs."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.waiting import tiny, wait_until
from tests.sweeps.made import RATES, a_plan, driven, ended, trials_of, waiting
from tfm_core.choices.config import Experiment
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.sweeps import driver as driving
from tfm_core.sweeps.driver import Driver, go_on, stop
from tfm_core.sweeps.plan import SEARCHES
from tfm_core.sweeps.space import Choices, Range, with_values
from tfm_core.sweeps.store import Sweep, Trials
from tfm_core.training.progress import LOSS_DIVERGED, TrainingDiverged


def valley(experiment: Experiment) -> float:
    """A loss that is lowest at a rate of 0.005 and with two heads."""
    away = math.log10(experiment.training.learning_rate / 0.005)
    return away**2 + 0.1 * abs(experiment.model.n_heads - 2) + 0.01


@pytest.mark.parametrize("search", SEARCHES)
def test_each_sampler_spends_the_budget_on_runs_that_can_be(
    driver: Driver, store: RunStore, search: str
) -> None:
    sweep = driver.sweeps.create(a_plan(search=search, max_runs=9))
    driven(driver, store, sweep, valley)

    trials, runs = trials_of(sweep), store.list()
    assert len(runs) == 9
    assert {trial.run_id for trial in trials if trial.has_run} == {run.id for run in runs}
    assert sweep.plan().reason == "The budget of 9 runs is used up."
    impossible = [trial for trial in trials if trial.values.get("model.n_heads") == 3]
    assert all(trial.state == "failed" and "n_heads" in trial.why for trial in impossible)
    assert not any(trial.has_run for trial in impossible)
    for trial in trials:
        if trial.has_run:
            run = store.get(trial.run_id or "")
            assert trial.value == pytest.approx(valley(run.experiment), rel=1e-6)
            assert run.meta.name.startswith(f"Rates and heads {trial.number}: Learning rate ")
    rates = {trial.values["training.learning_rate"] for trial in trials}
    assert len(rates) == (3 if search == "grid" else len(trials))


def test_a_grid_is_tried_once_and_ends(driver: Driver, store: RunStore) -> None:
    space = (Choices("training.warmup", (0.0, 0.1)), Choices("model.n_heads", (1, 2, 3)))
    sweep = driver.sweeps.create(a_plan(search="grid", space=space, max_runs=100))
    driven(driver, store, sweep, valley)
    assert sweep.plan().reason == "Every grid point was tried."
    assert len(store.list()) == 4  # six points, and three heads cannot be
    assert len(trials_of(sweep)) == 6


def test_chance_in_a_small_space_ends_when_nothing_new_comes(
    driver: Driver, store: RunStore
) -> None:
    space = (Choices("model.n_heads", (1, 2)),)
    sweep = driver.sweeps.create(a_plan(space=space, max_runs=100))
    driven(driver, store, sweep, valley, most=200)
    assert len(store.list()) == 2
    trials = trials_of(sweep)
    again = [trial for trial in trials if trial.run_id is None]
    assert len(again) >= driving.MAX_IDLE
    assert all("Same as trial" in trial.why for trial in again)
    assert "repeated or invalid" in (sweep.plan().reason or "")


def test_as_many_runs_wait_as_may_train_at_once(driver: Driver, store: RunStore) -> None:
    driver.sweeps.create(a_plan(at_once=3))
    driver.step()
    assert len(waiting(store)) == 3
    driver.step()
    assert len(waiting(store)) == 3


def test_a_budget_of_minutes_counts_what_the_runs_trained(driver: Driver, store: RunStore) -> None:
    sweep = driver.sweeps.create(a_plan(max_runs=None, max_minutes=1.25))
    driven(driver, store, sweep, valley)  # each trains for half a minute
    assert len(store.list()) == 3
    assert sweep.plan().reason == "The budget of 1.25 minutes is used up."


def test_a_sweep_that_stops_takes_its_runs_along_and_goes_on_with_them(
    driver: Driver, store: RunStore, sweep: Sweep
) -> None:
    driver.step()
    (run,) = waiting(store)
    sweep.change(stop)
    driver.step()
    assert run.status.state == "stopped"
    driver.step()
    assert sweep.plan().state == "stopped"
    assert run.status.reason == "Stopped with its sweep, and resumes with it."
    driver.step()
    assert len(store.list()) == 1

    sweep.change(go_on)
    driver.step()
    assert [one.id for one in waiting(store)] == [run.id]
    driven(driver, store, sweep, valley)
    (first, *_rest) = trials_of(sweep)
    assert (first.state, first.run_id) == ("complete", run.id)


def test_a_run_that_is_stopped_deleted_or_fails_costs_the_sweep_one_run(
    driver: Driver, store: RunStore, sweep: Sweep
) -> None:
    driver.step()
    waiting(store)[0].request("stop")
    driver.step()
    store.delete(waiting(store)[0].id)
    driver.step()
    ended(store, waiting(store)[0], state="failed", reason="The worker crashed: why.")
    driver.step()
    numbers = {"loss": "inf", "step": 3, "learning_rate": 1.0, "lower": 0.1}
    words = TrainingDiverged(LOSS_DIVERGED, **numbers).sentence
    ended(store, waiting(store)[0], state="failed", reason=words)
    driver.step()
    one, two, three, four, five = trials_of(sweep)
    states = [trial.state for trial in (one, two, three, four)]
    assert states == ["failed", "failed", "failed", "diverged"]
    assert "Stopped" in one.why
    assert two.why == "The run was deleted."
    assert three.why == "The worker crashed: why."
    assert four.why == words
    assert five.state == "running"


def test_a_run_that_is_interrupted_goes_on_three_times(
    driver: Driver, store: RunStore, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "SURE_SECONDS", 0.0)
    driver.step()
    run = waiting(store)[0]
    for resumed in range(4):
        assert next(one for one in trials_of(sweep) if one.run_id == run.id).resumed == resumed
        ended(store, run, state="interrupted", reason="The server stopped.")
        driver.step()
    trial = next(one for one in trials_of(sweep) if one.run_id == run.id)
    assert (trial.state, trial.resumed, trial.why) == ("failed", 3, "The server stopped.")


def test_ranges_change_while_it_goes_on_and_what_is_known_is_kept(
    driver: Driver, store: RunStore
) -> None:
    space = (Range("training.learning_rate", 0.001, 0.01), Choices("model.n_heads", (1, 2)))
    base = with_values(a_plan().base, {"training.learning_rate": 0.0035})  # no point of the grid
    sweep = driver.sweeps.create(a_plan(base=base, space=space, search="grid", max_runs=100))
    driven(driver, store, sweep, valley)
    assert len(store.list()) == 8

    wider = (space[0], Choices("model.n_heads", (1, 2, 4)))
    sweep.change(lambda plan: go_on(dataclasses.replace(plan, space=wider)))
    driven(driver, store, sweep, valley)
    assert len(store.list()) == 12  # the four new points alone
    assert len({trial.run_id for trial in trials_of(sweep)}) == 12

    narrower = (Choices("model.n_heads", (2, 4)),)
    sweep.change(lambda plan: go_on(dataclasses.replace(plan, space=narrower)))
    driven(driver, store, sweep, valley)
    newest = [trial.values for trial in trials_of(sweep)[12:]]
    assert newest == [{"model.n_heads": 2}, {"model.n_heads": 4}]
    assert store.list()[0].experiment.training.learning_rate == 0.0035
    best = min(trials_of(sweep), key=lambda trial: trial.value or 9)
    assert best.number <= 14


def test_a_line_that_is_full_is_waited_for(store: RunStore) -> None:
    queue = RunQueue(store, max_running=1, warm=0, limits=Limits(max_queued=1))
    driver = Driver(queue)
    other = store.create(a_plan().base)
    queue.submit(other)
    sweep = driver.sweeps.create(a_plan())
    driver.step()
    assert driver.error_of(sweep.id) == "The queue is full (1). Try again later."
    assert trials_of(sweep) == []
    ended(store, other)
    driver.wake()
    driver.step()
    assert driver.error_of(sweep.id) is None
    assert len(waiting(store)) == 1


def test_a_sweep_that_breaks_says_so_and_the_others_go_on(
    driver: Driver, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = (driver.sweeps.create(a_plan(name=name)) for name in ("Broken", "Sound"))
    suggest = Driver._suggest

    def breaks(self: Driver, tried: Trials) -> None:
        if tried.sweep.id == broken.id:
            raise RuntimeError("what nobody thought of")
        suggest(self, tried)

    with monkeypatch.context() as patch:
        patch.setattr(Driver, "_suggest", breaks)
        driver.step()
    assert "see the server log" in (driver.error_of(broken.id) or "")
    assert trials_of(sound)[0].has_run
    assert driver.error_of(sound.id) is None
    driver.wake()
    driver.step()
    assert driver.error_of(broken.id) is None
    assert trials_of(broken)[0].has_run


def test_what_the_host_does_not_allow_costs_no_run(store: RunStore) -> None:
    driver = Driver(RunQueue(store, warm=0, limits=Limits(max_steps=7)))
    space = (Choices("training.steps", (7, 70)),)
    sweep = driver.sweeps.create(a_plan(space=space, search="grid"))
    driven(driver, store, sweep, valley)
    short, long = trials_of(sweep)
    assert short.state == "complete"
    assert long.why == "This run has 70 steps; the limit is 7."
    assert len(store.list()) == 1


def test_a_server_that_only_shows_starts_nothing(store: RunStore) -> None:
    driver = Driver(RunQueue(store, warm=0, limits=Limits(only_shows=True)))
    sweep = driver.sweeps.create(a_plan())
    driver.step()
    assert "only shows trained runs" in (driver.error_of(sweep.id) or "")
    assert trials_of(sweep) == []


def test_two_servers_suggest_what_one_would(store: RunStore, queue: RunQueue) -> None:
    one, other = Driver(queue), Driver(RunQueue(store, warm=0, limits=Limits()))
    alone = one.sweeps.create(a_plan(search="tpe"))
    driven(one, store, alone, valley)
    shared = one.sweeps.create(a_plan(search="tpe"))
    for _look in range(60):
        for driver in (one, other):
            driver.step()
            for run in waiting(store):
                ended(store, run, loss=valley(run.experiment))
    assert shared.plan().state == "finished"
    values = [[trial.values for trial in trials_of(sweep)] for sweep in (alone, shared)]
    assert values[0] == values[1]


TWO_THREADS = """
import sys, threading, time
from pathlib import Path
from tests.sweeps.made import a_plan
from tfm_core.plots.training import sweeps as plots
from tfm_core.sweeps.store import SweepStore, Trials

assert "optuna" not in sys.modules
plan = a_plan()
sweep = SweepStore(Path(sys.argv[1])).create(plan)
both = threading.Barrier(2)

def page():
    both.wait()
    plots.figures(plan, [])

def driver():
    both.wait()
    time.sleep(float(sys.argv[2]))
    Trials(sweep, plan).suggestion()

threads = [threading.Thread(target=work) for work in (page, driver)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("later", [0.0, 0.05, 0.1])
def test_a_page_and_the_driver_may_load_optuna_at_once(tmp_path: Path, later: float) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_THREADS, str(tmp_path), str(later)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


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
