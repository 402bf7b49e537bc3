"""Whose a set of one's own is, how much room sets may take, and undo."""

import dataclasses

import pytest

from tests.data.user_data.test_sets import ONE, OTHER, PREPARED
from tests.limits import limited
from tests.runs.waiting import tiny
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.experiment import Experiment
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import SetMissing
from tfm_core.runs import own_sets
from tfm_core.runs.auth import NotYours, Visitor
from tfm_core.runs.disk import quota
from tfm_core.runs.disk.quota import Bounds
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue.limits import LimitReached
from tfm_core.settings import Settings

pytestmark = pytest.mark.quick

MINE, THEIRS = Visitor(ONE, is_public=True), Visitor(OTHER, is_public=True)


def kept(store, visitor=MINE, settings=None, **changes):
    prepared = dataclasses.replace(PREPARED, **changes)
    settings = settings or Settings()
    return own_sets.keep(prepared, store=store, visitor=visitor, settings=settings)


def test_on_a_public_server_one_sees_and_removes_only_ones_own(store):
    own = kept(store)
    assert [one.id for one in own_sets.listed(store, MINE)] == [own.id]
    assert own_sets.listed(store, THEIRS) == []
    with pytest.raises(NotYours):
        own_sets.remove(own.id, store=store, visitor=THEIRS)
    assert own_sets.listed(store, dataclasses.replace(THEIRS, is_public=False))


def test_a_removed_set_can_be_taken_back_by_those_who_kept_it(store):
    own = kept(store)
    own_sets.remove(own.id, store=store, visitor=MINE)
    assert own_sets.listed(store, MINE) == []
    assert [one.id for one in own_sets.removed(store, MINE)] == [own.id]
    assert own_sets.removed(store, THEIRS) == []
    with pytest.raises(NotYours):
        own_sets.undo(own.id, store=store, visitor=THEIRS)
    assert own_sets.undo(own.id, store=store, visitor=MINE).content("test.jsonl") == b"[]\n"
    with pytest.raises(SetMissing):
        own_sets.undo(own.id, store=store, visitor=MINE)


def test_a_set_that_another_visitor_keeps_too_stays_for_them(store):
    own = kept(store)
    kept(store, THEIRS)
    own_sets.remove(own.id, store=store, visitor=MINE)
    assert own_sets.listed(store, MINE) == []
    assert own_sets.listed(store, THEIRS)


@pytest.mark.parametrize(
    ("settings", "limits", "sentence"),
    [
        (Settings(max_running=0), {}, "accepts no data"),
        (Settings(), {"max_own_data": 10}, "0 B of 10 B are in use"),
    ],
)
def test_a_server_bounds_the_sets_of_its_visitors_but_not_its_hosts_own(
    store, monkeypatch, settings, limits, sentence
):
    limited(monkeypatch, **limits)
    with pytest.raises(LimitReached, match=sentence):
        kept(store, settings=settings)
    kept(store, visitor=None, settings=settings)


def test_a_stranger_keeps_so_many_sets_and_no_more(store, monkeypatch):
    monkeypatch.setattr(own_sets, "MAX_PER_VISITOR", 2)
    for name in ("one", "two"):
        kept(store, name=name)
    with pytest.raises(LimitReached, match="limit of 2 data sets"):
        kept(store, name="three")
    kept(store, name="two")  # that is there already
    kept(store, THEIRS, name="three")


def test_sets_count_into_the_disk_that_all_may_take(store, end):
    old = end(store.create(tiny(), owner=OTHER), "finished")
    (old.folder / "probe.json").write_bytes(b"x" * 100_000)
    taken = quota.disk_use(store.root, store.kept()).runs
    went = []
    settings = Settings(max_disk=taken + 1_000)
    own = own_sets.keep(
        PREPARED, store=store, visitor=MINE, settings=settings, on_evicted=went.append
    )
    assert quota.size_of_sets(store.root) > PREPARED.n_bytes
    assert (went, [run.id for run in store.list()]) == ([], [old.id])
    large = dataclasses.replace(PREPARED, files={"train.jsonl": b"x" * 9_000})
    own_sets.keep(large, store=store, visitor=MINE, settings=settings, on_evicted=went.append)
    assert (went, store.list()) == ([1], [])
    found = quota.disk_use(store.root, (), Bounds(disk=100_000))
    assert found.sets == quota.size_of_sets(store.root) > 9_000
    assert found.free == 100_000 - found.sets
    own_sets.remove(own.id, store=store, visitor=MINE)
    assert quota.size_of_sets(store.root) == found.sets, "what is in the trash takes room too"
    hosts = store.create(tiny())
    with pytest.raises(LimitReached, match="The server is full"):
        kept(store, settings=Settings(max_disk=5), name="More")
    with pytest.raises(LimitReached, match="The server is full"):
        quota.evict(store.root, store.kept(), Bounds(disk=9_000), keeps=hosts.id)


def learning(store, own, owner):
    """Create a run that waits to learn from a set."""
    values = default_sections("encoder-decoder", "own-pairs")
    values["task"] |= {"data": own.id}
    return store.create(Experiment.parse(values), owner=owner)


def test_ones_own_run_that_waits_keeps_its_set(store):
    own = kept(store)
    run = learning(store, own, ONE)
    with pytest.raises(
        ValueError,
        match=f"“{run.meta.name}” uses “Two words”",
    ):
        own_sets.remove(own.id, store=store, visitor=MINE)
    assert own_sets.listed(store, MINE)


def test_another_visitors_copy_does_not_keep_a_set_and_says_that_it_is_gone(store):
    own = kept(store)
    copy = learning(store, own, OTHER)
    own_sets.remove(own.id, store=store, visitor=MINE)
    assert own_sets.listed(store, MINE) == []
    with sets.below(store.root):
        assert execute(copy).state == "failed"
    assert "is not here" in copy.status.reason


def test_on_ones_own_machine_every_waiting_run_keeps_a_set(store):
    own = kept(store)
    learning(store, own, OTHER)
    alone = dataclasses.replace(MINE, is_public=False)
    with pytest.raises(ValueError, match="Stop it first"):
        own_sets.remove(own.id, store=store, visitor=alone)


def test_the_runs_of_a_set_are_ones_own(store):
    own = kept(store)
    first, second = (learning(store, own, ONE) for _ in range(2))
    learning(store, own, OTHER)
    found = own_sets.runs_by_set(store, MINE)[own.id]
    assert {run.id for run in found} == {first.id, second.id}
    assert len(own_sets.runs_by_set(store)[own.id]) == 3
