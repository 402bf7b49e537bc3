"""The trash: a day to think again, and room where it is needed."""

import errno
import os
import time

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.disk import quota, trash
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


class FullDisk:
    """A disk that takes nothing before so many runs have left the trash."""

    def __init__(self, store, runs: int) -> None:
        self.store, self.most = store, len(left(store)) - runs

    def write(self) -> str:
        if len(left(self.store)) > self.most:
            raise OSError(errno.ENOSPC, "No space left on device", "/srv/runs")
        return "written"


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


def test_an_emptied_trash_leaves_nothing(store, end):
    deleted(store, end), deleted(store, end)
    store.empty_trash()
    assert os.listdir(store.root / trash.FOLDER) == []


def test_a_full_disk_takes_what_was_deleted_first_and_no_more(store, end):
    ids = [deleted(store, end, seconds_ago=ago) for ago in (300, 200, 100)]
    assert quota.with_eviction(store.root, FullDisk(store, 2).write) == "written"
    assert left(store) == ids[2:]


def test_a_full_disk_without_anything_deleted_is_refused(store, end):
    deleted(store, end)
    with pytest.raises(OSError, match="No space left"):
        quota.with_eviction(store.root, FullDisk(store, 2).write)
    assert left(store) == []


def test_another_refusal_leaves_the_trash_alone(store, end):
    kept = deleted(store, end)

    def write():
        raise OSError(errno.EROFS, "Read-only file system")

    with pytest.raises(OSError, match="Read-only"):
        quota.with_eviction(store.root, write)
    assert left(store) == [kept]


def test_a_last_word_has_room_on_a_full_disk(store):
    run = store.create(tiny())

    def write():
        if (run.folder / quota.RESERVE).exists():
            raise OSError(errno.ENOSPC, "No space left on device")

    quota.with_eviction(store.root, write, last_word_of=run.folder)
    assert not (run.folder / quota.RESERVE).exists()
    quota.reserve(run.folder)
    assert (run.folder / quota.RESERVE).exists()


def test_a_run_is_begun_in_the_room_of_a_deleted_one(store, end, monkeypatch):
    deleted(store, end)
    disk, keep = FullDisk(store, 1), quota.reserve
    monkeypatch.setattr(quota, "reserve", lambda folder: (disk.write(), keep(folder)))
    run = store.create(tiny())
    assert run.problem is None
    assert sorted(os.listdir(store.root)) == sorted([trash.FOLDER, run.id])


def test_a_run_that_finds_no_room_leaves_nothing(store, monkeypatch):
    def keep(folder):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(quota, "reserve", keep)
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
