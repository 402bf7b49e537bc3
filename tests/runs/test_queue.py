"""The queue starts runs in processes of their own, and none waits for ever."""

import dataclasses
import errno
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import psutil
import pytest

from tests.runs.comparing import assert_same, stopping_at
from tests.runs.conftest import end_workers
from tests.runs.test_status import DEAD
from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.disk import locks
from tfm_core.runs.disk.locks import FOLDER, RunLock
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import process_id, this_host
from tfm_core.runs.process.requests import Control, drop
from tfm_core.runs.queue import local_workers, run_queue, waiting_line
from tfm_core.runs.queue.limits import LimitReached, Limits
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
def test_runs_outlive_their_server_and_are_found_again(store, make_queue):
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

    queue = make_queue(max_running=1)
    queue.start()
    assert queue.n_running() == 1
    step = first.status.step
    wait_until(lambda: first.status.step > step, "the first run goes on")
    assert waiting.status.state == "queued"
    first.request("stop")
    assert wait_for(waiting, "finished", "failed").state == "finished"


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


def test_two_queues_never_start_the_same_run(store, make_queue):
    runs = [store.create(tiny(2)) for _ in range(2)]
    for _ in range(2):
        make_queue(max_running=2).start()
    for run in runs:
        assert wait_for(run, "finished", "failed").state == "finished"
        records = [record["event"] for record in run.reader().read()]
        assert records.count("started") == 1


def test_a_run_that_is_held_is_not_started(shared):
    store, queue = shared
    run, errors = store.create(tiny()), waiting_line.start_errors
    hold = RunLock(run.folder)
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


def test_damaged_runs_keep_neither_the_queue_from_starting_nor_sound_runs_waiting(
    store, make_queue
):
    """A worker without a number, a queued run without an experiment, a file where locks lie."""
    forged = store.create(tiny(), state="running")
    write_status(forged.folder, Status("running", pid=-1, host=this_host(), created=1.0))
    broken, barred, sound = (store.create(tiny()) for _ in range(3))
    (broken.folder / "experiment.json").write_text("{")
    (barred.folder / "claims").write_text("?")
    queue = make_queue(max_running=1)
    queue.start()
    assert queue.n_running() == 0
    wait_until(lambda: sound.status.state == "finished", "the sound run trains")
    wait_until(lambda: broken.status.state == "failed", "the broken one was tried")
    assert broken.status.reason == broken.problem
    assert forged.status.reason.startswith("This run is damaged (the value of “pid” in status.json")


def test_a_worker_trains_one_run_after_another_each_as_if_it_were_the_first(
    store, make_queue, monkeypatch
):
    monkeypatch.setattr(local_workers, "REFILL_SECONDS", 3600)
    queue = make_queue(max_running=1, warm=1)
    queue.start()
    wait_until(lambda: len(queue.backend.pool.waiting) == 1, "a worker waits")
    runs = [store.create(tiny()) for _ in range(3)]
    for run in runs:
        queue.submit(run)
    workers = [wait_for(run, "finished", "failed").pid for run in runs]
    assert len(set(workers)) == 1
    here = store.create(tiny())
    execute(here)
    for run in runs:
        assert_same(here, run)
        assert run.status.queue_position is None


@pytest.fixture
def turns(make_queue, monkeypatch):
    """A queue whose thread is the test: ``turns.step()`` is one look."""
    monkeypatch.setattr(run_queue, "RETRY_SECONDS", 0.0)
    return make_queue(max_running=1)


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_a_run_waiting_until_there_is_room(store, turns, monkeypatch):
    run, errors, process = (
        store.create(tiny()),
        waiting_line.start_errors,
        local_workers.WorkerProcess,
    )
    turns.submit(run)
    for module, name in ((locks, "lock"), (local_workers, "write_status"), (process, "send")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            turns.step()
        assert waiting_line.ids(store.root) == [run.id]
        assert "The disk is full" in errors[run.folder]
        assert "starts as soon as possible" in errors[run.folder]
        assert (run.status.state == "queued") == (name != "send")
    assert turns.backend.pool.waiting == [], "a worker that a status names has the run or is dead"

    turns.step()
    assert run.status.state == "starting"
    assert waiting_line.ids(store.root) == []
    turns.step()
    assert run.folder not in errors


@pytest.mark.parametrize("table", [None, b"", b"no table" * 999])
def test_a_folder_without_a_sound_table_has_its_queued_runs_in_line(store, turns, table):
    old, first, second = (store.create(tiny()) for _ in range(3))
    write_status(old.folder, Status("stopped"))
    if table is not None:
        waiting_line.join(store.root, second.id, None)
        (store.root / FOLDER / waiting_line.FILE).write_bytes(table)
    turns.start()
    assert waiting_line.ids(store.root) == [first.id, second.id]


def test_a_run_whose_server_was_killed_as_it_started_it_still_waits(store, turns):
    run = store.create(tiny())
    turns.submit(run)
    write_status(run.folder, dataclasses.replace(run.status.with_process(DEAD), state="starting"))
    assert run.status.state == "interrupted"
    turns.step()
    assert run.status.state == "starting"
    assert run.status.mark != DEAD


def test_a_run_that_waits_no_more_leaves_the_line(store, turns):
    done, gone = store.create(tiny()), store.create(tiny())
    write_status(done.folder, Status("finished"))
    for run in (done, gone):
        waiting_line.join(store.root, run.id, None)
    store.delete(gone.id)
    turns.step()
    assert waiting_line.ids(store.root) == []


def test_a_line_without_room_is_an_error_of_the_disk_and_stays_as_it_was(tmp_path, monkeypatch):
    waiting_line.join(tmp_path, "firstrun", None)
    made = sqlite3.connect

    def small(*arguments, **named):
        table = made(*arguments, **named)
        table.execute("PRAGMA max_page_count = 1")  # SQLite allows no fewer than there are
        return table

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(OSError) as caught:  # noqa: PT011
        waiting_line.join(tmp_path, "x" * 9999, None)
    assert caught.value.errno == errno.ENOSPC
    assert waiting_line.ids(tmp_path) == ["firstrun"]


WRITER = """
import os, sys, pathlib
from tfm_core.runs.queue import waiting_line
for n in range(999):
    waiting_line.join(pathlib.Path(sys.argv[1]), f"{os.getpid()}-{n}", None)
    print(f"{os.getpid()}-{n}", flush=True)
"""


def test_processes_that_are_killed_as_they_write_the_line_lose_nothing(tmp_path):
    command, written = [sys.executable, "-c", WRITER, str(tmp_path)], []
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for writer in writers:
        written += [writer.stdout.readline().strip() for _ in range(5)]
        writer.kill()
        written += writer.communicate()[0].split()
    there = waiting_line.ids(tmp_path)
    assert set(written) <= set(there)
    assert len(there) <= len(written) + len(writers), "each was killed as it wrote one"


def test_the_time_that_a_run_may_take_counts_over_resumes(store):
    run = store.create(tiny(steps=100_000))
    write_status(run.folder, Status("stopped", total_steps=100_000, seconds=60.0))
    stopped = execute(run, Control(run.folder, max_seconds=60))
    assert (stopped.state, stopped.step) == ("stopped", 1)
    assert "at the limit of" in stopped.reason
    assert run.has_checkpoint

    resuming = RunQueue(store, warm=0, limits=Limits(max_seconds=60))
    write_status(run.folder, dataclasses.replace(stopped, seconds=61.0))
    with pytest.raises(LimitReached, match="limit of 60 seconds"):
        resuming.resume(run)
    copy = store.fork(run.id, steps=100_001)
    resuming.resume(copy)
    assert copy.status.state == "queued", "what its parent trained is not its own time"


def test_a_long_pause_ends_where_others_wait(store):
    run = store.create(tiny(steps=100_000))
    drop(run.folder, "pause")
    write_status(run.folder, Status("starting").with_process(process_id()))  # as its queue does
    training = threading.Thread(target=execute, args=(run, Control(run.folder, max_pause=0)))
    training.start()
    step = wait_until(lambda: run.status.state == "paused" and run.status.step, "it is paused")
    assert run.has_checkpoint
    waiting_line.join(store.root, "another-run", None)
    training.join()
    status = run.status
    assert (status.state, status.step) == ("stopped", step)
    assert status.reason.startswith("Stopped after a pause of 0 seconds because other runs wait")
