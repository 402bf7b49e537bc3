"""A server says whether it can train, and why it can't, without looking all the time."""

import errno
import os
import threading

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.queue import health as subject
from tfm_core.runs.queue.health import Checkup
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue


@pytest.fixture
def queue(store):
    """A queue that works and starts nothing."""
    queue = RunQueue(store, max_running=0, warm=0, limits=Limits(max_queued=5))
    queue.start()
    yield queue
    queue.close()


def test_a_queue_that_works_is_healthy_and_its_line_is_counted(queue, store):
    assert Checkup(queue).look().reason is None  # the folder isn't there yet: it can be made
    for _ in range(2):
        queue.submit(store.create(tiny()))
    health = Checkup(queue).look()
    assert health.reason is None
    assert (health.waiting, health.max_waiting, health.running) == (2, 5, 0)
    assert not [name for name in os.listdir(store.root) if name.startswith("tmp")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EROFS, "The disk of the runs is read-only"),
        (errno.EACCES, "The permissions of the folder of runs forbid this"),
    ],
)
def test_a_folder_that_takes_nothing_is_told(queue, monkeypatch, error, reason):
    def refuse(**_):
        raise OSError(error, "no", "/somewhere/secret")

    monkeypatch.setattr(subject.tempfile, "TemporaryFile", refuse)
    health = Checkup(queue).look()
    assert health.reason.startswith(f"The folder of runs cannot be written. {reason}")
    assert "secret" not in health.reason


def test_a_server_that_only_shows_needs_no_room(store, monkeypatch):
    queue = RunQueue(store, warm=0, limits=Limits(only_shows=True))
    queue.start()
    store.root.write_text("no folder")
    health = Checkup(queue).look()
    queue.close()
    assert health.reason is None


def test_a_folder_that_does_not_answer_is_told(queue, monkeypatch):
    monkeypatch.setattr(subject, "PATIENCE_SECONDS", 0.01)
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(_):
        hangs.set()
        goes_on.wait()

    monkeypatch.setattr(subject, "_look", hang)
    checkup = Checkup(queue)
    first = threading.Thread(target=checkup.look)
    first.start()
    hangs.wait()
    assert checkup.look().reason == "The folder of runs does not answer."
    goes_on.set()
    first.join()


def test_a_look_is_kept_for_a_second_and_longer_where_it_took_long(queue, monkeypatch):
    clock, looks = [100.0], []

    def looked(_queue, seconds=0.0):
        clock[0] += seconds
        looks.append(clock[0])
        return subject.Health(None, running=len(looks))

    monkeypatch.setattr(subject.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(subject, "_look", looked)
    checkup = Checkup(queue)
    assert checkup.look().running == 1
    clock[0] = 100.99
    assert checkup.look().running == 1
    clock[0] = 101.0
    assert checkup.look().running == 2
    clock[0] = 102.0
    monkeypatch.setattr(subject, "_look", lambda queue: looked(queue, seconds=0.5))
    assert checkup.look().running == 3  # until 112.5: a twentieth of the time is for looking
    clock[0] = 112.49
    assert checkup.look().running == 3
    clock[0] = 112.5
    assert checkup.look().running == 4
