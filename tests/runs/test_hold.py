"""At most one process holds a run."""

import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from tfm_core.runs.disk import locks
from tfm_core.runs.process import identity
from tfm_core.runs.process.identity import ProcessId, process_id
from tfm_core.runs.queue.hold import Hold, RunHeld
from tfm_core.runs.status import Status, read_status, write_status

DEAD = ProcessId(2**22 + 1, process_id().host, 1.0)  # beyond the highest process number of Linux

LOCKS = """
import sys, pathlib
from tfm_core.runs.queue.hold import Hold
hold = Hold(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.readline()
"""


def is_free(folder) -> bool:
    try:
        Hold(folder, patience=0.0).release()
    except RunHeld:
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
    Hold(tmp_path).release()
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
            Hold(tmp_path)
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
            holds.append(Hold(tmp_path, patience=0.0))
        except RunHeld:
            return

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(holds) == 1
    holds[0].release()
    assert is_free(tmp_path)
