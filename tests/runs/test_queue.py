"""The queue starts runs in processes of their own, which need it no longer once they train."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.runs.comparing import assert_same, stopping_at
from tests.runs.conftest import end_workers
from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.backends import local
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.hold import Hold
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunStore

LONG = 1_000_000
"""Steps of a run that ends only when it is told to."""


@pytest.fixture
def shared(tmp_path):
    """A store and a started queue with one warm worker."""
    store = RunStore(tmp_path / "shared", recorded=None)
    queue = RunQueue(store, max_running=2, warm=1, limits=Limits())
    queue.start()
    yield store, queue
    queue.close()
    end_workers(store)


def wait_for(run, *states):
    wait_until(lambda: run.status.state in states, f"{states}, and it is {run.status}")
    return run.status


def steps_of(run):
    return run.curves().steps["step"].astype(int).tolist()


def test_a_run_answers_pause_step_snapshot_resume_and_stop(shared):
    _, queue = shared
    run = shared[0].create(tiny(LONG))
    queue.submit(run)
    wait_until(lambda: run.status.step > 2, "the run trains")

    run.request("pause")
    step = wait_for(run, "paused").step
    assert run.has_checkpoint

    run.request("step")
    run.request("step")
    wait_until(lambda: run.status.step == step + 2, "two single steps")
    wait_for(run, "paused")
    assert step + 2 in steps_of(run)

    run.request("snapshot")
    wait_until(lambda: step + 2 in run.snapshot_steps(), "a snapshot")
    assert run.status.step == step + 2

    run.request("resume")
    wait_until(lambda: run.status.step > step + 2 and run.status.state == "running", "it goes on")

    run.request("step")
    wait_for(run, "paused")
    run.request("stop")
    status = wait_for(run, "stopped")
    assert status.reason == "Stopped by hand."

    queue.resume(run)
    wait_until(lambda: run.status.step > status.step, "it goes on from its checkpoint")
    assert run.curves().resumed == (status.step,)
    run.request("stop")
    wait_for(run, "stopped")


def test_a_killed_run_is_interrupted_and_goes_on_bit_for_bit(shared, store):
    _, queue = shared
    experiment = tiny(LONG, validate_every=40)
    run = shared[0].create(experiment)
    queue.submit(run)
    wait_until(lambda: run.status.step > 5, "the run trains")
    run.request("pause")
    paused = wait_for(run, "paused")
    run.request("resume")
    wait_until(lambda: run.status.step > paused.step, "it is beyond the checkpoint")

    os.kill(paused.pid, signal.SIGKILL)
    status = wait_for(run, "interrupted")
    assert "ended at step" in status.reason
    with pytest.raises(ValueError, match="You can resume it"):
        run.request("resume")

    queue.resume(run)
    wait_until(lambda: run.status.step > status.step + 45, "it goes on, and is validated")
    run.request("stop")
    last = wait_for(run, "stopped", "failed").step
    (resumed,) = run.curves().resumed
    assert paused.step <= resumed <= status.step
    here = store.create(experiment)
    execute(here, *stopping_at(last, here))
    assert_same(here, run)


def test_a_worker_that_is_asked_to_end_keeps_a_checkpoint(shared):
    run = shared[0].create(tiny(LONG))
    shared[1].submit(run)
    wait_until(lambda: run.status.step > 2, "the run trains")
    os.kill(run.status.pid, signal.SIGTERM)
    status = wait_for(run, "stopped")
    assert "by the machine" in status.reason
    assert run.has_checkpoint


def test_a_worker_that_breaks_down_leaves_its_last_words(shared):
    run = shared[0].create(tiny())
    (run.folder / "worker.log").mkdir()
    shared[1].submit(run)
    status = wait_for(run, "failed")
    assert status.reason.startswith("The worker crashed: ")
    assert "Is a directory" in status.reason
    assert str(run.folder) not in status.reason, "its last words, without a path"


@pytest.mark.usefixtures("forked_all")
def test_runs_outlive_their_server_and_are_found_again(store):
    code = (
        "import sys, pathlib; from tfm_core.runs import RunStore;"
        "from tfm_core.runs.queue.run_queue import RunQueue;"
        "queue = RunQueue(RunStore(pathlib.Path(sys.argv[1])), max_running=1, warm=0);"
        "queue.start(); sys.stdin.readline(); queue.close()"
    )
    first = store.create(tiny(LONG))
    waiting = store.create(tiny())
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(store.root)], stdin=subprocess.PIPE, text=True
    )
    wait_until(lambda: first.status.step > 2, "the first run trains")
    server.communicate("\n")
    assert first.status.state == "running"
    assert waiting.status.queue_position == 1

    queue = RunQueue(store, max_running=1, warm=0, limits=Limits())
    queue.start()
    try:
        assert queue.n_running() == 1
        step = first.status.step
        wait_until(lambda: first.status.step > step, "the first run goes on")
        assert waiting.status.state == "queued"
        first.request("stop")
        assert wait_for(waiting, "finished", "failed").state == "finished"
    finally:
        queue.close()


def test_warm_workers_end_with_their_queue(store):
    queue = RunQueue(store, warm=2, limits=Limits())
    queue.start()
    wait_until(lambda: len(queue.backend.pool.waiting) == 2, "two workers wait")
    pids = [process.mark.pid for process in queue.backend.pool.waiting]
    queue.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.usefixtures("true_start")
def test_a_worker_ends_when_its_server_dies_before_giving_it_a_run():
    worker = subprocess.run(
        [sys.executable, "-m", "tfm_core.runs.process.worker", "--warm"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert worker.stdout == "ready\n"


def test_two_queues_never_start_the_same_run(store):
    runs = [store.create(tiny(2)) for _ in range(2)]
    queues = [RunQueue(store, max_running=2, warm=0, limits=Limits()) for _ in range(2)]
    for queue in queues:
        queue.start()
    try:
        for run in runs:
            assert wait_for(run, "finished", "failed").state == "finished"
            records = [record["event"] for record in run.reader().read()]
            assert records.count("started") == 1
    finally:
        for queue in queues:
            queue.close()


def test_a_run_that_is_held_is_not_started(shared):
    store, queue = shared
    run, errors = store.create(tiny()), waiting_line.start_errors
    hold = Hold(run.folder)
    queue.submit(run)
    wait_until(lambda: errors.get(run.folder), "it says why it doesn't begin")
    assert errors[run.folder].startswith("Another process still uses this run")
    behind = store.create(tiny(2))
    queue.submit(behind)
    wait_for(behind, "finished")
    assert (run.status.state, run.status.pid) == ("queued", None)

    hold.release()
    assert wait_for(run, "finished", "failed").state == "finished"
    assert run.folder not in errors
    assert waiting_line.ids(store.root) == []


def test_damaged_runs_keep_neither_the_queue_from_starting_nor_sound_runs_waiting(store):
    """A worker without a number, a queued run without an experiment, a file where locks lie."""
    forged = store.create(tiny(), state="running")
    write_status(forged.folder, Status("running", pid=-1, host=this_host(), created=1.0))
    broken, barred, sound = (store.create(tiny()) for _ in range(3))
    (broken.folder / "experiment.json").write_text("{")
    (barred.folder / "claims").write_text("?")
    queue = RunQueue(store, max_running=1, warm=0, limits=Limits())
    queue.start()
    try:
        assert queue.n_running() == 0
        wait_until(lambda: sound.status.state == "finished", "the sound run trains")
        wait_until(lambda: broken.status.state == "failed", "the broken one was tried")
        assert broken.status.reason == broken.problem
        assert forged.status.reason.startswith("This run is damaged (status.json")
    finally:
        queue.close()


def test_a_worker_trains_one_run_after_another_each_as_if_it_were_the_first(store, monkeypatch):
    monkeypatch.setattr(local, "REFILL_SECONDS", 3600)
    queue = RunQueue(store, max_running=1, warm=1, limits=Limits())
    queue.start()
    try:
        wait_until(lambda: len(queue.backend.pool.waiting) == 1, "a worker waits")
        runs = [store.create(tiny()) for _ in range(3)]
        for run in runs:
            queue.submit(run)
        workers = [wait_for(run, "finished", "failed").pid for run in runs]
    finally:
        queue.close()
    assert len(set(workers)) == 1
    here = store.create(tiny())
    execute(here)
    for run in runs:
        assert_same(here, run)
        assert run.status.queue_position is None
