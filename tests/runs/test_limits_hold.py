"""However many press at once, no more is made than a limit lets through."""

import dataclasses
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.app.runs import run_actions
from pages.app.runs.run_actions import Start
from tests.data.own.test_sets import PREPARED
from tests.runs.waiting import tiny
from tests.sweeps.made import a_plan
from tfm_core.runs import own_sets
from tfm_core.runs.auth import Visitor
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import LimitReached, Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.sentences import StudentError
from tfm_core.settings import Settings
from tfm_core.sweeps import store as sweep_store
from tfm_core.sweeps.store import SweepStore

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


@pytest.fixture
def queue(store):
    made = []

    def make(**limits) -> RunQueue:
        made.append(RunQueue(store, warm=0, limits=Limits(**limits)))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


@pytest.mark.parametrize(("state", "act"), [("queued", "submit"), ("stopped", "resume")])
def test_no_more_runs_wait_than_may(store, queue, state, act):
    runs = [store.create(tiny(), state=state) for _ in range(N_AT_ONCE)]
    servers = [queue(max_queued=MAX), queue(max_queued=MAX)]
    assert at_once(lambda n: getattr(servers[n % 2], act)(runs[n])) == MAX
    assert len(waiting_line.ids(store.root)) == MAX
    assert Counter(run.status.state for run in runs) == {"queued": MAX, "stopped": N_AT_ONCE - MAX}


def test_servers_of_a_folder_start_no_more_runs_than_may_train(store, queue):
    servers = [queue(max_queued=100) for _ in range(N_AT_ONCE)]
    for server in servers:
        server.max_running = 1
        server.submit(store.create(tiny(steps=1_000_000)))
    assert at_once(lambda n: servers[n].step()) == N_AT_ONCE
    assert servers[0].n_running() == 1


def test_a_visitor_has_no_more_runs_in_hand_than_may(store, queue, monkeypatch):
    here, who = queue(max_queued=100, max_per_session=MAX), Visitor(OWNER, is_public=True)
    monkeypatch.setattr(run_actions, "acting_visitor", lambda: who)
    monkeypatch.setattr(run_actions.runs_access, "store", lambda: store)
    monkeypatch.setattr(run_actions.runs_access, "queue", lambda: here)
    start = Start(tiny(), "cpu")
    assert at_once(lambda _n: run_actions.enqueue(start)) == MAX
    assert store.n_active(OWNER) == len(store.kept()) == MAX


def test_a_stranger_keeps_no_more_sets_than_may(store, monkeypatch):
    monkeypatch.setattr(own_sets, "MAX_OF_A_STRANGER", MAX)
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
