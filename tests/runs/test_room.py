"""Room on the disk: quotas, trash, leftovers, and files that are read once."""

import errno
import os
import time
from pathlib import Path

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.disk import quota, trash
from tfm_core.runs.disk.atomic import CachedReader
from tfm_core.runs.disk.failures import Refused
from tfm_core.runs.disk.quota import Bounds
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.queue.limits import LimitReached

pytestmark = pytest.mark.quick


def made(store, end, state="finished", *, owner="a" * 64, n_bytes=0):
    """Return a run that a visitor began and that is over."""
    run = end(store.create(tiny(), owner=owner, name=f"Run {len(store.list())}"), state)
    (run.folder / "probe.json").write_bytes(b"x" * n_bytes)
    return run


def ids(store):
    return {run.id for run in store.list()}


def test_a_folder_is_measured_anew_when_a_file_came(store, end):
    run = made(store, end)
    before = quota.folder_size(run.folder)
    assert before % 4096 == 0
    (run.folder / "snapshots" / "00000001.safetensors").write_bytes(b"x" * 10_001)
    assert quota.folder_size(run.folder) == before + 3 * 4096


def test_runs_and_trash_are_counted_apart(store, end):
    kept, gone = made(store, end), made(store, end)
    store.delete(gone.id)
    found = quota.disk_use(store.root, [kept])
    assert (found.n_runs, found.n_deleted) == (1, 1)
    assert found.runs == quota.folder_size(kept.folder)
    assert found.deleted > 0
    assert found.free > 0
    bounds = Bounds(disk=found.runs + found.deleted + 7)
    assert quota.disk_use(store.root, [kept], bounds).free == 7


def test_too_many_runs_send_the_oldest_of_a_visitor_into_the_trash(store, end):
    hosts = made(store, end, owner=None)
    first, second = made(store, end), made(store, end)
    new = store.create(tiny(), owner="b" * 64)
    assert quota.evict(store.root, store.kept(), Bounds(runs=4), keeps=new.id) == 0
    gone = quota.evict(store.root, store.kept(), Bounds(runs=3), keeps=new.id)
    assert gone == 1
    assert ids(store) == {hosts.id, second.id, new.id}
    assert store.undelete(first.id).id == first.id


def test_too_much_disk_takes_the_trash_first_then_the_oldest_runs_for_good(store, end):
    trashed = made(store, end, n_bytes=40_000)
    store.delete(trashed.id)
    made(store, end, n_bytes=400_000)
    young = made(store, end)
    new = store.create(tiny(), owner="b" * 64)
    taken = sum(quota.folder_size(run.folder) for run in store.kept())
    assert quota.evict(store.root, store.kept(), Bounds(disk=taken), keeps=new.id) == 0
    assert trash.deleted(store.root) == []
    gone = quota.evict(store.root, store.kept(), Bounds(disk=taken - 1), keeps=new.id)
    assert gone == 1
    assert ids(store) == {young.id, new.id}
    assert trash.deleted(store.root) == []


@pytest.mark.parametrize("bounds", [Bounds(runs=2), Bounds(disk=5_000)])
def test_where_none_may_go_a_start_is_refused_and_nothing_went(store, end, bounds):
    waits = store.create(tiny(), owner="a" * 64)
    hosts = made(store, end, owner=None)
    new = store.create(tiny(), owner="b" * 64)
    with pytest.raises(LimitReached, match="The server is full"):
        quota.evict(store.root, store.kept(), bounds, keeps=new.id)
    assert ids(store) == {waits.id, hosts.id, new.id}


DAY = 24 * 3600.0  # as the page of runs says


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


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def later(monkeypatch):
    """Let it be half an hour later: a file's time of change cannot be set back."""
    now = time.time() + 1_800
    monkeypatch.setattr("tfm_core.runs.disk.trash.time.time", lambda: now)


def leave(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")


def test_half_made_runs_go(store, later):
    run = store.create(tiny())
    leave(store.root / ".new-half" / "experiment.json")
    leave(store.root / trash.FOLDER / ".gone-0123456789ab" / "status.json")
    leave(store.root / "notes.txt")
    assert trash.clean_up(store.root) == 2
    assert names(store.root) == sorted([trash.FOLDER, "notes.txt", run.id])
    assert names(store.root / trash.FOLDER) == []


def test_half_written_files_of_a_run_go(store, end, later):
    run = end(store.create(tiny()))
    before = names(run.folder / "checkpoints" / "last")
    for name in (
        ".status.json.0b00c4f5",
        "snapshots/.00000007.safetensors.0b00c4f5",
        "checkpoints/last/checkpoint.safetensors.new",
        "checkpoints/last/.tmpAb3xYz",
    ):
        leave(run.folder / name)
    assert trash.clean_up(store.root) == 4
    assert names(run.folder / "checkpoints" / "last") == before
    assert names(run.folder / "snapshots") == []
    assert run.status.state == "stopped"


def test_what_has_a_worker_is_left_alone(store, end, later):
    run = end(store.create(tiny()), "running", pid=os.getpid(), host=this_host())
    leave(run.folder / "checkpoints" / "last" / "checkpoint.safetensors.new")
    assert trash.clean_up(store.root) == 0


def test_what_is_being_written_is_left_alone(store):
    leave(store.root / ".new-now" / "experiment.json")
    leave(store.create(tiny(), state="stopped").folder / ".status.json.0b00c4f5")
    assert trash.clean_up(store.root) == 0


def test_a_copy_in_the_making_is_no_leftover(store, monkeypatch):
    copied = store.root / ".new-copy" / "events.jsonl"
    leave(copied)
    os.utime(copied, (0, 0))  # as copying does: the time of the original
    os.utime(copied.parent, (0, 0))
    assert trash.clean_up(store.root) == 0


def test_a_link_out_of_the_folder_leads_nowhere(store, tmp_path, later):
    leave(tmp_path / "elsewhere" / "kept")
    store.create(tiny())
    (store.root / ".new-link").symlink_to(tmp_path / "elsewhere")
    assert trash.clean_up(store.root) == 1
    assert names(tmp_path / "elsewhere") == ["kept"]


class Reader:
    """Reads text and counts how often."""

    def __init__(self, **bounds: int) -> None:
        self.n_read = 0
        self.remembered = CachedReader(self._read, **bounds)

    def of(self, path: Path) -> str:
        return self.remembered.of(path.parent, path.name)

    def _read(self, path: Path) -> str:
        self.n_read += 1
        return path.read_text()


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Make files that changed a while ago, by the clock that is asked."""
    monkeypatch.setattr("tfm_core.runs.disk.atomic._SETTLED_NS", -(10**12))

    def made(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return made


def test_a_file_is_read_once_until_it_changes(old):
    reader, path = Reader(), old("a", "one")
    assert [reader.of(path) for _ in range(3)] == ["one"] * 3
    assert reader.n_read == 1
    beside = old("b", "two")
    os.replace(beside, path)
    assert [reader.of(path) for _ in range(3)] == ["two"] * 3
    assert reader.n_read == 2


def test_a_file_that_changed_just_now_is_read_each_time(tmp_path):
    reader, path = Reader(), tmp_path / "a"
    path.write_text("one")
    assert reader.of(path) == reader.of(path) == "one"
    assert reader.n_read == 2


def test_large_files_and_the_oldest_of_many_are_let_go(old):
    reader = Reader(most=2, largest=7)
    large = old("large", "x" * 11)
    reader.of(large), reader.of(large)
    assert reader.n_read == 2
    paths = [old(name, name) for name in "abc"]
    for path in paths:
        reader.of(path)
    assert reader.n_read == 5
    assert reader.of(paths[2]) == "c"
    assert reader.n_read == 5
    assert reader.of(paths[0]) == "a"
    assert reader.n_read == 6
