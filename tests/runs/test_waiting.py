"""No run waits for ever: what goes wrong when its turn comes is said, and tried again."""

import dataclasses
import errno
import sqlite3
import subprocess
import sys
import threading

import pytest

from tests.runs.test_hold import DEAD
from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.backends import local
from tfm_core.runs.disk import locks
from tfm_core.runs.disk.locks import FOLDER
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.process.requests import Control, drop
from tfm_core.runs.queue import run_queue, waiting_line
from tfm_core.runs.queue.limits import LimitReached, Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.status import Status, write_status


@pytest.fixture
def turns(store, monkeypatch):
    """A queue whose thread is the test: ``turns.step()`` is one look."""
    monkeypatch.setattr(run_queue, "RETRY_SECONDS", 0.0)
    turns = RunQueue(store, max_running=1, warm=0, limits=Limits())
    yield turns
    turns.close()


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_a_run_waiting_until_there_is_room(store, turns, monkeypatch):
    run, errors, process = store.create(tiny()), waiting_line.start_errors, local.WorkerProcess
    turns.submit(run)
    for module, name in ((locks, "lock"), (local, "write_status"), (process, "send")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            turns.step()
        assert waiting_line.ids(store.root) == [run.id]
        assert "The disk is full" in errors[run.folder]
        assert "starts as soon as it can" in errors[run.folder]
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
    assert "the limit here" in stopped.reason

    resuming = RunQueue(store, warm=0, limits=Limits(max_seconds=60))
    write_status(run.folder, dataclasses.replace(stopped, seconds=61.0))
    with pytest.raises(LimitReached, match="has trained for 60 seconds"):
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
    assert status.reason.startswith("Stopped after a pause of 0 seconds: other runs wait")
