"""The state of a run, the one process that holds it, and what that writes down."""

import dataclasses
import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.disk import locks
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.process import identity, requests
from tfm_core.runs.process.identity import ProcessId, is_alive, process_id, this_boot, this_host
from tfm_core.runs.process.recorder import AwakeClock, Recorder, keeps
from tfm_core.runs.status import ALIVE, STATES, Status, read_status, write_status
from tfm_core.sentences import N_, Sentence


@pytest.mark.quick
@pytest.mark.parametrize("state", sorted(set(STATES) - ALIVE - {"interrupted"}))
def test_a_state_without_a_worker_is_read_as_it_was_written(tmp_path, state):
    status = Status(state, step=3, total_steps=7, epoch=0.5, reason="why", seconds=1.25)
    write_status(tmp_path, status)
    assert read_status(tmp_path) == status


@pytest.mark.quick
@pytest.mark.parametrize("state", sorted(ALIVE))
def test_a_living_worker_keeps_its_state_and_a_dead_one_is_an_interruption(tmp_path, state):
    mark = process_id()
    here = Status(state, step=3).with_process(mark)
    write_status(tmp_path, here)
    assert read_status(tmp_path) == here

    write_status(tmp_path, dataclasses.replace(here, started=f"{this_boot()}:1"))
    gone = read_status(tmp_path)

    assert gone.state == "interrupted"
    assert gone.can_resume
    assert "ended at step 3" in gone.reason


@pytest.mark.quick
def test_a_dead_process_is_not_alive_even_before_it_is_reaped():
    child = subprocess.Popen([sys.executable, "-c", ""])
    mark = process_id(child.pid)
    wait_until(lambda: not is_alive(mark), "the child is a zombie")
    child.wait()
    assert not is_alive(mark)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("finished", "Train a copy"),
        ("stopped", "can resume it"),
        ("failed", "resume it from its last checkpoint"),
        ("running", "was interrupted"),
    ],
)
def test_a_request_that_nobody_would_take_is_refused(store, end, state, sentence):
    run = end(store.create(tiny()), state)
    with pytest.raises(ValueError, match=sentence):
        run.request("pause")


@pytest.mark.quick
def test_a_run_that_waits_can_only_be_stopped_and_unknown_requests_are_refused(store):
    run = store.create(tiny())
    with pytest.raises(ValueError, match="can only stop it"):
        run.request("pause")
    with pytest.raises(ValueError, match="'fly' isn't a request"):
        store.create(tiny()).request("fly")


@pytest.mark.quick
def test_requests_are_taken_once_in_the_order_in_which_they_came(store, end):
    run = end(store.create(tiny()), "running", pid=os.getpid(), host=this_host())
    for kind in ("pause", "step", "step", "snapshot", "stop"):
        run.request(kind)
    (run.folder / "requests" / "litter").write_text("?")

    assert requests.take(run.folder) == ["pause", "step", "step", "snapshot", "stop"]
    assert requests.take(run.folder) == []
    assert list((run.folder / "requests").iterdir()) == []


@pytest.mark.quick
def test_reason_keeps_its_template_and_values_through_the_file(tmp_path):
    reason = N_("Stopped after {n:,} steps.", n=1200)
    write_status(tmp_path, Status("stopped", reason=reason))
    found = read_status(tmp_path).reason
    assert found == "Stopped after 1,200 steps."
    assert isinstance(found, Sentence)
    assert (found.template, found.values) == ("Stopped after {n:,} steps.", {"n": 1200})


DEAD = ProcessId(2**22 + 1, process_id().host, 1.0)  # beyond the highest process number of Linux

LOCKS = """
import sys, pathlib
from tfm_core.runs.disk.locks import RunLock
hold = RunLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.readline()
"""


def is_free(folder) -> bool:
    try:
        RunLock(folder, patience=0.0).release()
    except RunLocked:
        return False
    return True


def test_a_lock_holds_a_run_whatever_is_known_of_its_process(tmp_path):
    """As one in another container, whose processes cannot be seen from here."""
    worker = subprocess.Popen(
        [sys.executable, "-c", LOCKS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert worker.stdout.readline() == "held\n"
    write_status(tmp_path, Status("running").with_process(DEAD))
    assert not is_free(tmp_path)

    worker.kill()
    RunLock(tmp_path).release()
    worker.communicate()


def test_the_process_that_the_status_names_holds_the_run_while_it_lives(tmp_path, neighbour):
    """As a worker does that does not lock its run yet."""
    elsewhere, now = ProcessId(3, "another-machine"), time.time()
    for mark, heartbeat, expected in (
        (process_id(), now, True),
        (neighbour, now, False),
        (DEAD, now, True),
        (elsewhere, now, False),
        (elsewhere, now - identity.STALE_SECONDS, True),
        (elsewhere, None, True),
    ):
        write_status(tmp_path, Status("starting", heartbeat=heartbeat).with_process(mark))
        assert is_free(tmp_path) == expected
    write_status(tmp_path, Status("finished").with_process(neighbour))
    assert is_free(tmp_path)


@pytest.mark.parametrize("step", [-31_536_000, -60, 60, 31_536_000])
def test_a_clock_that_is_set_lets_no_second_worker_in(tmp_path, neighbour, monkeypatch, step):
    write_status(tmp_path, Status("running").with_process(neighbour))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + step)
    assert read_status(tmp_path).state == "running"
    assert not is_free(tmp_path)


def test_a_hold_that_cannot_be_written_leaves_the_run_free(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(OSError, match="No space left"):
            RunLock(tmp_path)
    assert is_free(tmp_path)


def test_where_there_are_no_locks_what_is_known_of_the_process_counts(
    tmp_path, neighbour, monkeypatch
):
    def none(*_, **__):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(locks, "lock_descriptor", none)
    assert is_free(tmp_path)
    write_status(tmp_path, Status("running").with_process(neighbour))
    assert not is_free(tmp_path)


def test_of_many_that_find_the_run_of_a_dead_process_one_wins(tmp_path):
    write_status(tmp_path, Status("starting").with_process(DEAD))
    barrier, holds = threading.Barrier(8), []

    def race():
        barrier.wait()
        try:
            holds.append(RunLock(tmp_path, patience=0.0))
        except RunLocked:
            return

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(holds) == 1
    holds[0].release()
    assert is_free(tmp_path)


FIRST_STEPS, LINES = 100, 600


@pytest.mark.parametrize("total", [7, 600, 5000, 1_000_003])
def test_about_six_hundred_steps_beyond_the_first_hundred_are_written_down(total):
    kept = [step for step in range(1, min(total, 20_000) + 1) if keeps(step, total)]
    assert kept[:FIRST_STEPS] == list(range(1, min(total, FIRST_STEPS) + 1))
    assert len(kept) <= FIRST_STEPS + 2 * LINES
    assert keeps(total, total)


def test_a_change_of_state_outlives_a_power_cut_and_a_heartbeat_need_not(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(file) or fsync(file))
    with Recorder(RunLock(tmp_path), Status("running")) as writer:
        writer.change("running")
        assert len(synced) == 2, "the content, then the name"
        uptime = read_status(tmp_path).uptime
        wait_until(lambda: read_status(tmp_path).uptime > uptime, "the heart beats")
    assert len(synced) == 2


def test_a_worker_whose_run_was_taken_over_while_it_slept_writes_no_more(tmp_path):
    mine = Status("running").with_process(process_id())
    with Recorder(RunLock(tmp_path), mine) as writer:
        writer.change("running")
        write_status(tmp_path, Status("running").with_process(ProcessId(3, "another-machine")))
        writer.record({"event": "step", "step": 1})
        writer.clock._asleep += 60.0  # as after a SIGSTOP
        with pytest.raises(RunLocked, match="Another worker took over this run"):
            writer.record({"event": "step", "step": 2})
    assert (tmp_path / "events.jsonl").read_text().count("\n") == 1


def test_a_gap_between_two_looks_is_sleep():
    now = 10.0
    clock = AwakeClock(lambda: now)
    begin = clock()
    for now in (10.5, 12.0, 72.0, 72.25):  # noqa: B007
        clock.look()
    assert clock() - begin == pytest.approx(2.25)
    assert clock.asleep == 60.0
