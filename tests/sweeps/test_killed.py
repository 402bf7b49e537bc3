"""A server that is killed loses nothing of a sweep, wherever it was, and leaves no run over."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sweeps.made import a_plan, driven, ended, trials_of, waiting
from tests.sweeps.test_driver import valley
from tfm_core.runs.disk import atomic
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.sweeps import store as sweep_store
from tfm_core.sweeps.driver import Driver
from tfm_core.sweeps.store import Sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

FIRST = 2
"""Writes of the trials until a sweep's first run trains: its settings, and that it was queued."""


def killed(work: Callable[[], None]) -> None:
    """Work in a process that is killed, or ends."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.core(1)
@pytest.mark.parametrize("half", [False, True])
def test_a_server_may_be_killed_at_any_write_of_the_trials(
    store: RunStore, queue: RunQueue, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(queue)
    sweep = driver.sweeps.create(a_plan(max_runs=3))
    for n in range(1, FIRST + 1):

        def work(n: int = n) -> None:
            count = [0]

            def write(path: Path, content: bytes, *, lasting: bool) -> None:
                count[0] += 1
                if count[0] == n:
                    if half:
                        path.with_name(f".{path.name}.ab").write_bytes(content[:20])
                    os.kill(os.getpid(), signal.SIGKILL)
                atomic.write_bytes(path, content, lasting=lasting)

            monkeypatch.setattr(sweep_store, "write_bytes", write)
            Driver(queue).step()

        killed(work)
    driven(driver, store, sweep, valley)
    assert len(store.list()) == 3
    with_runs = [trial for trial in trials_of(sweep) if trial.has_run]
    assert sorted(trial.run_id or "" for trial in with_runs) == sorted(r.id for r in store.list())
    assert [trial.state for trial in with_runs] == ["complete"] * 3


def test_a_server_killed_between_ask_and_tell_is_followed_by_another(
    store: RunStore, queue: RunQueue, sweep: Sweep
) -> None:
    killed(lambda: Driver(queue).step())
    (run,) = waiting(store)
    (asked,) = [trial for trial in trials_of(sweep) if trial.state == "running"]
    assert asked.run_id == run.id
    ended(store, run, loss=0.25)  # meanwhile: a run needs no server

    another = Driver(queue)
    another.step()
    told = next(trial for trial in trials_of(sweep) if trial.run_id == run.id)
    assert (told.state, told.value, told.values) == ("complete", 0.25, asked.values)
    driven(another, store, sweep, valley)
    assert len(store.list()) == 5


def test_a_server_killed_after_it_made_a_run_finds_it_again(
    store: RunStore, queue: RunQueue, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        monkeypatch.setattr(RunQueue, "submit", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        Driver(queue).step()

    killed(work)
    (run,) = store.list()
    assert waiting(store) == []
    Driver(queue).step()
    assert [one.id for one in waiting(store)] == [run.id]


@pytest.mark.parametrize(
    ("garbled", "sentence"),
    [
        (b"\x00\xff garbage\n", "trials.json isn't JSON"),
        (b"[]", "holds no named values"),
        (b'{"trials": [{"number": 0, "values": {"seed": NaN}, "state": "lost"}]}', "is invalid"),
        (b'{"trials": [{"number": 3, "values": {}}]}', "trial 0 is incomplete"),
        (b'{"trials": [{"number": 0, "values": {}, "state": "complete"}]}', "0 is incomplete"),
    ],
)
def test_damaged_trials_are_said_and_left_alone(
    driver: Driver, store: RunStore, sweep: Sweep, garbled: bytes, sentence: str
) -> None:
    sweep.trials.write_bytes(garbled)
    driver.step()
    assert sentence in (driver.error_of(sweep.id) or "")
    with pytest.raises(ValueError, match=sentence):
        trials_of(sweep)
    assert sweep.trials.read_bytes() == garbled
    assert store.list() == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "sweep.json is missing"),
        (b"{", "sweep.json isn't JSON"),
        (b'{"version": 2, "name": "a"}', "another version of the app"),
        (b'{"version": 3, "name": "a", "created": 5}', "value of “created” is invalid"),
        (b'{"version": 3, "name": "a"}', "“created” is missing"),
    ],
)
def test_a_damaged_plan_is_said_and_nothing_is_lost(
    driver: Driver, sweep: Sweep, content: bytes | None, sentence: str
) -> None:
    path = sweep.folder / "sweep.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        sweep.plan()
    driver.step()
    assert [one.id for one in driver.sweeps.list()] == [sweep.id]
    with pytest.raises(ValueError, match=sentence):
        sweep.change(lambda plan: plan)
