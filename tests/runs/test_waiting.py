"""No run waits for ever: what goes wrong when its turn comes is said, and tried again."""

import dataclasses
import errno
import os
import threading

import pytest

from tests.runs.test_claim import DEAD
from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.backends import local
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.process.requests import Control, drop
from tfm_core.runs.queue import claim, run_queue, tickets
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
    run = store.create(tiny())
    turns.submit(run)
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)  # the claim of its worker cannot be written
        turns.step()
    assert (run.status.state, run.status.queue_position) == ("queued", 1)
    assert "The disk is full" in tickets.start_error(run.folder)
    assert "starts as soon as it can" in tickets.start_error(run.folder)
    (worker,) = turns.backend.pool.waiting()

    with monkeypatch.context() as patch:
        patch.setattr(local, "write_status", full)  # nor, once it is claimed, its state
        turns.step()
    assert (run.status.state, run.status.queue_position) == ("queued", 1)
    assert not worker.is_alive, "a worker that was claimed for a run has it, or is no more"

    turns.step()
    assert run.status.state == "starting"
    assert tickets.waiting(store.root) == []
    turns.step()
    assert tickets.start_error(run.folder) is None


def test_a_run_that_waits_without_a_ticket_is_given_one(store, turns):
    old, waits = store.create(tiny()), store.create(tiny())
    write_status(old.folder, Status("stopped"))
    turns.start()
    assert tickets.waiting(store.root) == [waits.id]


def test_a_run_whose_server_was_killed_as_it_started_it_still_waits(store, turns):
    run = store.create(tiny())
    turns.submit(run)
    claim.take(run.folder, DEAD)
    write_status(run.folder, dataclasses.replace(run.status.with_process(DEAD), state="starting"))
    assert run.status.state == "interrupted"
    turns.step()
    assert run.status.state == "starting"
    assert run.status.mark != DEAD


def test_the_ticket_of_a_run_that_waits_no_more_goes(store, turns):
    done, gone = store.create(tiny()), store.create(tiny())
    write_status(done.folder, Status("finished"))
    tickets.add(store.root, done.id)
    tickets.add(store.root, gone.id)
    store.delete(gone.id)
    turns.step()
    assert tickets.waiting(store.root) == []


def test_the_line_keeps_its_order_when_the_clock_is_set_back(store, monkeypatch):
    tickets.add(store.root, "firstrun")
    monkeypatch.setattr("time.time_ns", lambda: 5)
    tickets.add(store.root, "secondrun")
    assert tickets.waiting(store.root) == ["firstrun", "secondrun"]


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
    tickets.add(store.root, "another-run")
    training.join()
    status = run.status
    assert (status.state, status.step) == ("stopped", step)
    assert status.reason.startswith("Stopped after a pause of 0 seconds: other runs wait")
