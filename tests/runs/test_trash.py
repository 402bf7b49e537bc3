"""The trash: a day to think again, and room where it is needed."""

import errno
import os
import time

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.disk import trash
from tfm_core.runs.disk.failures import Refused

DAY = 24 * 3600.0  # as the page of runs says

pytestmark = pytest.mark.quick


def deleted(store, end, *, seconds_ago=0.0):
    """Return the id of a run that was deleted a while ago."""
    run = end(store.create(tiny()))
    store.delete(run.id)
    then = time.time() - seconds_ago
    os.utime(store.root / trash.FOLDER / run.id, (then, then))
    return run.id


def left(store):
    return [one.folder.name for one in trash.deleted(store.root)]


def test_a_deleted_run_is_kept_for_a_day(store, end):
    old = deleted(store, end, seconds_ago=DAY + 60)
    young = deleted(store, end, seconds_ago=DAY - 60)
    assert store.restorable_until(young) == pytest.approx(time.time() + 60, abs=30)
    assert trash.empty(store.root, older_than=DAY) == 1
    assert left(store) == [young]
    assert store.restorable_until(old) is None
    with pytest.raises(ValueError, match="no deleted run"):
        store.undelete(old)
    assert store.undelete(young).problem is None


def test_deleting_counts_from_the_press_not_from_the_last_step(store, end):
    run = end(store.create(tiny()))
    os.utime(run.folder, (0, 0))
    store.delete(run.id)
    assert store.restorable_until(run.id) > time.time() + DAY - 60


def test_a_run_that_finds_no_room_leaves_nothing(store, monkeypatch):
    def full(folder, _status):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr("tfm_core.runs.store.write_status", full)
    with pytest.raises(Refused, match="The disk is full") as refused:
        store.create(tiny())
    assert str(store.root) not in str(refused.value)
    assert os.listdir(store.root) == []


def test_a_disk_too_full_for_a_trash_still_lets_a_run_be_deleted(store, end, monkeypatch):
    run = end(store.create(tiny()))

    def mkdir(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.mkdir", mkdir)
    store.delete(run.id)
    assert os.listdir(store.root) == []


def test_a_refused_run_leaves_no_copy_of_its_text(store):
    run = store.create(tiny())
    store.discard(run)
    assert os.listdir(store.root) == []
