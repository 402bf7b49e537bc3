"""Room: measured, and made within what a host lets the runs take."""

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.disk import quota, trash
from tfm_core.runs.disk.quota import Bounds
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
