"""The waiting line: its order, its limits, who may join it, and whether a server can train."""

import dataclasses
import errno
import hashlib
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.app.runs import run_actions
from pages.app.runs.run_actions import Start
from tests.data.user_data.test_sets import PREPARED
from tests.runs.waiting import tiny
from tests.sweeps.made import a_plan
from tfm_core.data.tasks import data_shape
from tfm_core.facts.storage import attention_numbers
from tfm_core.models.build import build_model
from tfm_core.runs import own_sets
from tfm_core.runs.auth import Visitor
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.process.identity import ProcessId, process_id, this_host
from tfm_core.runs.queue import run_queue as subject
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import LimitReached, Limits
from tfm_core.runs.queue.run_queue import Checkup, RunQueue
from tfm_core.runs.status import Status, write_status
from tfm_core.sentences import StudentError
from tfm_core.settings import Settings
from tfm_core.sweeps import store as sweep_store
from tfm_core.sweeps.store import SweepStore


def test_runs_wait_in_the_order_in_which_they_came(store, make_queue):
    queue = make_queue()
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


def test_who_starts_many_runs_delays_each_other_visitor_by_one(store, make_queue):
    names = submitted(make_queue(limits=Limits(max_queued=99)), store, "aaaaa" + "b" + "cc" + "b")
    assert line(store, names) == ["a1", "b1", "c1", "a2", "c2", "b2", "a3", "a4", "a5"]


def test_a_run_that_trains_was_its_owners_turn(store, make_queue):
    queue = make_queue()
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
def test_a_run_that_ended_lately_was_its_owners_turn(store, make_queue, ago, expected):
    queue = make_queue()
    names = submitted(queue, store, "aa")
    ended(store, waiting_line.ids(store.root)[0], ago=ago)
    restarted = make_queue()
    assert line(store, names | submitted(restarted, store, "b")) == expected


def test_who_resumes_a_run_that_trained_lately_stands_behind_first_runs(store, make_queue):
    queue = make_queue()
    names = submitted(queue, store, "a")
    (first,) = waiting_line.ids(store.root)
    stopped = Status("stopped", step=3, total_steps=7, heartbeat=time.time())
    waiting_line.leave(store.root, first)
    names |= submitted(queue, store, "b")
    write_status(store.root / first, stopped)
    queue.resume(store.get(first))
    assert line(store, names) == ["b1", "a1"]
    assert line(store, names | submitted(queue, store, "c")) == ["b1", "c1", "a1"]


def test_a_full_line_takes_no_more_and_says_so(store, make_queue):
    queue = make_queue(limits=Limits(max_queued=2))
    for _ in range(2):
        queue.submit(store.create(tiny()))
    run = store.create(tiny())
    with pytest.raises(LimitReached, match="The queue is full"):
        queue.submit(run)
    assert run.status.state == "stopped"
    assert "Try again later" in run.status.reason


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(max_steps=6), "has 7 steps; the limit is 6"),
        (Limits(max_parameters=100), r"parameters; the limit is 100"),
        (Limits(max_attention=50), r"[\d,]+ attention weights .* is 50"),
    ],
)
def test_a_run_beyond_the_limits_is_refused(store, make_queue, limits, sentence):
    with pytest.raises(LimitReached, match=sentence):
        make_queue(limits=limits).submit(store.create(tiny()))


def test_a_limit_itself_is_allowed_and_the_last_place_taken():
    run = tiny()
    model = build_model(run.model, data_shape(run))
    n_parameters = sum(one.numel() for one in model.parameters())
    sizes = {
        "max_steps": 7,
        "max_parameters": n_parameters,
        "max_attention": attention_numbers(run),
    }
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
        ("queued", "already training or waiting"),
        ("running", "already training or waiting"),
    ],
)
def test_only_a_run_that_ended_early_is_resumed(store, make_queue, state, sentence):
    run = store.create(tiny())
    mark = process_id()
    write_status(run.folder, Status(state, pid=mark.pid, host=mark.host))
    with pytest.raises(ValueError, match=sentence):
        make_queue().resume(run)


def test_a_resumed_run_without_a_checkpoint_starts_again_and_a_new_one_is_submitted(
    store, make_queue, end
):
    run = store.create(tiny())
    write_status(run.folder, Status("running", pid=1, host=this_host(), created=1.0))
    make_queue().resume(run)
    assert run.status.state == "queued"
    assert run.status.reason == "Starts again from the beginning."
    with pytest.raises(ValueError, match=r"already started"):
        make_queue().submit(end(store.create(tiny())))


def test_runs_elsewhere_count_while_their_heart_beats(store, make_queue):
    run = store.create(tiny())
    there = Status("running", pid=5, host="another-machine", heartbeat=time.time())
    write_status(run.folder, there)
    assert make_queue().n_running() == 1
    write_status(run.folder, dataclasses.replace(there, heartbeat=1.0))
    assert make_queue().n_running() == 0
    assert run.status.mark == ProcessId(5, "another-machine")


N_AT_ONCE = 13

MAX = 5

OWNER = "a" * 64


def at_once(press):
    """Have N_AT_ONCE threads press at the same time; return how many were let through."""
    barrier = threading.Barrier(N_AT_ONCE)

    def one(number: int) -> bool:
        barrier.wait()
        try:
            press(number)
        except StudentError:
            return False
        return True

    with ThreadPoolExecutor(N_AT_ONCE) as pool:
        return sum(pool.map(one, range(N_AT_ONCE)))


@pytest.mark.parametrize(("state", "act"), [("queued", "submit"), ("stopped", "resume")])
def test_no_more_runs_wait_than_may(store, make_queue, state, act):
    runs = [store.create(tiny(), state=state) for _ in range(N_AT_ONCE)]
    servers = [make_queue(limits=Limits(max_queued=MAX)), make_queue(limits=Limits(max_queued=MAX))]
    assert at_once(lambda n: getattr(servers[n % 2], act)(runs[n])) == MAX
    assert len(waiting_line.ids(store.root)) == MAX
    assert Counter(run.status.state for run in runs) == {"queued": MAX, "stopped": N_AT_ONCE - MAX}


def test_servers_of_a_folder_start_no_more_runs_than_may_train(store, make_queue):
    servers = [make_queue(limits=Limits(max_queued=100)) for _ in range(N_AT_ONCE)]
    for server in servers:
        server.max_running = 1
        server.submit(store.create(tiny(steps=1_000_000)))
    assert at_once(lambda n: servers[n].step()) == N_AT_ONCE
    assert servers[0].n_running() == 1


def test_a_visitor_has_no_more_runs_in_hand_than_may(store, make_queue, monkeypatch):
    here, who = (
        make_queue(limits=Limits(max_queued=100, max_per_session=MAX)),
        Visitor(OWNER, is_public=True),
    )
    monkeypatch.setattr(run_actions, "acting_visitor", lambda: who)
    monkeypatch.setattr(run_actions.runs_access, "store", lambda: store)
    monkeypatch.setattr(run_actions.runs_access, "queue", lambda: here)
    start = Start(tiny(), "cpu")
    assert at_once(lambda _n: run_actions.enqueue(start)) == MAX
    assert store.n_active(OWNER) == len(store.kept()) == MAX


def test_a_stranger_keeps_no_more_sets_than_may(store, monkeypatch):
    monkeypatch.setattr(own_sets, "MAX_PER_VISITOR", MAX)
    who = Visitor(OWNER, is_public=True)

    def add(number: int) -> None:
        prepared = dataclasses.replace(PREPARED, name=f"Set {number}")
        own_sets.keep(prepared, store=store, visitor=who, settings=Settings())

    assert at_once(add) == MAX
    assert len(own_sets.listed(store, who)) == MAX


def test_no_more_sweeps_are_made_than_may(store, monkeypatch):
    monkeypatch.setattr(sweep_store, "MAX", MAX)
    sweeps = SweepStore(store.root)
    assert at_once(lambda _n: sweeps.create(a_plan())) == MAX
    assert len(sweeps.list()) == MAX


def test_a_lock_is_taken_again_by_its_thread_and_given_back_after_an_error(tmp_path):
    with limit_lock(tmp_path, "runs"), limit_lock(tmp_path, "runs"):
        pass
    with pytest.raises(LimitReached), limit_lock(tmp_path, "runs"):
        raise LimitReached("5")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(limit_lock(tmp_path, "runs").__enter__).result(timeout=60)


@pytest.fixture
def working(make_queue):
    """A queue that works and starts nothing."""
    queue = make_queue(max_running=0, limits=Limits(max_queued=5))
    queue.start()
    return queue


def test_a_queue_that_works_is_healthy_and_its_line_is_counted(working, store):
    assert Checkup(working).look().reason is None  # the folder isn't there yet: it can be made
    for _ in range(2):
        working.submit(store.create(tiny()))
    health = Checkup(working).look()
    assert health.reason is None
    assert (health.waiting, health.max_waiting, health.running) == (2, 5, 0)
    assert not [name for name in os.listdir(store.root) if name.startswith("tmp")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EROFS, "The disk of the runs is read-only"),
        (errno.EACCES, "The permissions of the runs folder forbid this"),
    ],
)
def test_a_folder_that_takes_nothing_is_told(working, monkeypatch, error, reason):
    def refuse(**_):
        raise OSError(error, "no", "/somewhere/secret")

    monkeypatch.setattr(subject.tempfile, "TemporaryFile", refuse)
    health = Checkup(working).look()
    assert health.reason.startswith(f"The runs folder can't be written. {reason}")
    assert "secret" not in health.reason


def test_a_server_that_only_shows_needs_no_room(store, make_queue):
    queue = make_queue(limits=Limits(only_shows=True))
    queue.start()
    store.root.write_text("no folder")
    assert Checkup(queue).look().reason is None


def test_a_folder_that_does_not_answer_is_told(working, monkeypatch):
    monkeypatch.setattr(subject, "PATIENCE_SECONDS", 0.01)
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(_):
        hangs.set()
        goes_on.wait()

    monkeypatch.setattr(subject, "_look", hang)
    checkup = Checkup(working)
    first = threading.Thread(target=checkup.look)
    first.start()
    hangs.wait()
    assert checkup.look().reason == "The folder of runs does not answer."
    goes_on.set()
    first.join()


def test_a_look_is_kept_for_a_second_and_longer_where_it_took_long(working, monkeypatch):
    clock, looks = [100.0], []

    def looked(_queue, seconds=0.0):
        clock[0] += seconds
        looks.append(clock[0])
        return subject.Health(None, running=len(looks))

    monkeypatch.setattr(subject.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(subject, "_look", looked)
    checkup = Checkup(working)
    assert checkup.look().running == 1
    clock[0] = 100.99
    assert checkup.look().running == 1
    clock[0] = 101.0
    assert checkup.look().running == 2
    clock[0] = 102.0
    monkeypatch.setattr(subject, "_look", lambda working: looked(working, seconds=0.5))
    assert checkup.look().running == 3  # until 112.5: a twentieth of the time is for looking
    clock[0] = 112.49
    assert checkup.look().running == 3
    clock[0] = 112.5
    assert checkup.look().running == 4
