"""The waiting line: its order, its limits, and what may join it."""

import dataclasses
import hashlib
import os
import time
from collections import Counter

import pytest

from tests.runs.waiting import tiny
from tfm_core.data.tasks import data_shape
from tfm_core.facts.storage import attention_numbers
from tfm_core.models.build import build_model
from tfm_core.runs.process.identity import ProcessId, process_id, this_host
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import LimitReached, Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.status import Status, write_status


@pytest.fixture
def idle(store):
    """Make a queue that isn't started, and end it."""
    made = []

    def make(**options) -> RunQueue:
        made.append(RunQueue(store, **{"warm": 0, "limits": Limits(), **options}))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


def test_runs_wait_in_the_order_in_which_they_came(store, idle):
    queue = idle()
    runs = [store.create(tiny()) for _ in range(3)]
    for run in reversed(runs):
        queue.submit(run)

    assert [run.status.queue_position for run in runs] == [3, 2, 1]

    runs[1].request("stop")
    assert runs[1].status.state == "stopped"
    assert [run.status.queue_position for run in runs] == [2, None, 1]
    store.delete(runs[2].id)
    assert runs[0].status.queue_position == 1


def submitted(queue, store, owners):
    """Submit a run for each owner in turn; return them as ``owner, n-th of theirs``."""
    names, count = {}, Counter()
    for owner in owners:
        run = store.create(tiny(), owner=hashlib.sha256(owner.encode()).hexdigest())
        queue.submit(run)
        count[owner] += 1
        names[run.id] = f"{owner}{count[owner]}"
    return names


def line(store, names):
    return [names[run_id] for run_id in waiting_line.ids(store.root)]


def test_who_starts_many_runs_delays_each_other_visitor_by_one(store, idle):
    names = submitted(idle(limits=Limits(max_queued=99)), store, "aaaaa" + "b" + "cc" + "b")
    assert line(store, names) == ["a1", "b1", "c1", "a2", "c2", "b2", "a3", "a4", "a5"]


def test_a_run_that_trains_was_its_owners_turn(store, idle):
    queue = idle()
    names = submitted(queue, store, "aa")
    first = store.get(waiting_line.ids(store.root)[0])
    write_status(first.folder, Status("running", total_steps=7, pid=os.getpid(), host=this_host()))
    waiting_line.leave(store.root, first.id)
    assert line(store, names | submitted(queue, store, "b")) == ["b1", "a2"]


def ended(store, run_id, *, ago=0.0):
    """Let a waiting run have trained until so many seconds ago."""
    write_status(store.root / run_id, Status("finished", heartbeat=time.time() - ago))
    waiting_line.leave(store.root, run_id)


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        (5, ["b1", "a2"]),
        (900 + 60, ["a2", "b1"]),
        (-900 - 60, ["a2", "b1"]),  # a clock that was set back
    ],
)
def test_a_run_that_ended_lately_was_its_owners_turn(store, idle, ago, expected):
    queue = idle()
    names = submitted(queue, store, "aa")
    ended(store, waiting_line.ids(store.root)[0], ago=ago)
    restarted = idle()
    assert line(store, names | submitted(restarted, store, "b")) == expected


def test_who_resumes_a_run_that_trained_lately_stands_behind_first_runs(store, idle):
    queue = idle()
    names = submitted(queue, store, "a")
    (first,) = waiting_line.ids(store.root)
    stopped = Status("stopped", step=3, total_steps=7, heartbeat=time.time())
    waiting_line.leave(store.root, first)
    names |= submitted(queue, store, "b")
    write_status(store.root / first, stopped)
    queue.resume(store.get(first))
    assert line(store, names) == ["b1", "a1"]
    assert line(store, names | submitted(queue, store, "c")) == ["b1", "c1", "a1"]


def test_a_full_line_takes_no_more_and_says_so(store, idle):
    queue = idle(limits=Limits(max_queued=2))
    for _ in range(2):
        queue.submit(store.create(tiny()))
    run = store.create(tiny())
    with pytest.raises(LimitReached, match="2 runs wait"):
        queue.submit(run)
    assert run.status.state == "stopped"
    assert "Try again later" in run.status.reason


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(max_steps=6), "has 7 steps; the limit here is 6"),
        (Limits(max_parameters=100), r"parameters; the limit here is 100"),
        (Limits(max_attention=50), r"[\d,]+ attention weights .* hold 50"),
    ],
)
def test_a_run_beyond_the_limits_is_refused(store, idle, limits, sentence):
    with pytest.raises(LimitReached, match=sentence):
        idle(limits=limits).submit(store.create(tiny()))


def test_a_limit_itself_is_allowed_and_the_last_place_taken():
    run = tiny()
    model = build_model(run.model, data_shape(run))
    n_parameters = sum(one.numel() for one in model.parameters())
    sizes = {"max_steps": 7, "max_parameters": n_parameters,
             "max_attention": attention_numbers(run)}  # fmt: skip
    for name, size in sizes.items():
        Limits(**{name: size}).check(run, n_queued=0)
        Limits(**{name: size + 1}).check(run, n_queued=0)
        with pytest.raises(LimitReached):
            Limits(**{name: size - 1}).check(run, n_queued=0)
    limits = Limits(max_queued=3, max_per_session=2, max_seconds=5.0)
    limits.check_line(2)
    limits.check_session(1)
    limits.check_trained(4.99)
    for check, n in (
        (limits.check_line, 3),
        (limits.check_session, 2),
        (limits.check_trained, 5.0),  # it trains no second longer
    ):
        with pytest.raises(LimitReached):
            check(n)


@pytest.mark.parametrize("name", ["TFM_MAX_RUNNING", "TFM_MAX_SECONDS", "TFM_MAX_DISK"])
def test_a_server_that_only_shows_takes_no_run_and_says_so(store, end, monkeypatch, name):
    monkeypatch.setenv(name, "0")
    queue = RunQueue(store)
    with pytest.raises(LimitReached, match="only shows trained runs"):
        queue.submit(store.create(tiny()))
    with pytest.raises(LimitReached, match="only shows trained runs"):
        queue.resume(end(store.create(tiny())))


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("finished", "Train a copy further"),
        ("queued", "There is nothing to resume"),
        ("running", "There is nothing to resume"),
    ],
)
def test_only_a_run_that_ended_early_is_resumed(store, idle, state, sentence):
    run = store.create(tiny())
    mark = process_id()
    write_status(run.folder, Status(state, pid=mark.pid, host=mark.host))
    with pytest.raises(ValueError, match=sentence):
        idle().resume(run)


def test_a_resumed_run_without_a_checkpoint_starts_again_and_a_new_one_is_submitted(
    store, idle, end
):
    run = store.create(tiny())
    write_status(run.folder, Status("running", pid=1, host=this_host(), created=1.0))
    idle().resume(run)
    assert run.status.state == "queued"
    assert run.status.reason == "It starts again from the beginning."
    with pytest.raises(ValueError, match=r"Only a new run can be started"):
        idle().submit(end(store.create(tiny())))


def test_runs_elsewhere_count_while_their_heart_beats(store, idle):
    run = store.create(tiny())
    there = Status("running", pid=5, host="another-machine", heartbeat=time.time())
    write_status(run.folder, there)
    assert idle().n_running() == 1
    write_status(run.folder, dataclasses.replace(there, heartbeat=1.0))
    assert idle().n_running() == 0
    assert run.status.mark == ProcessId(5, "another-machine")
