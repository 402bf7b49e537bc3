"""A server that is killed loses nothing of a sweep, wherever it was, and leaves no run over."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.storages.journal import JournalFileBackend

from tests.sweeps.made import a_plan, driven, ended, trials_of, waiting
from tests.sweeps.test_driver import valley
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.sweeps.driver import Driver
from tfm_core.sweeps.store import Sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

FIRST = 11
"""Records until a sweep's first run trains: the study, what it is of, the trial, its two settings,
and what is noted of it."""


def killed(work: Callable[[], None]) -> None:
    """Work in a process that is killed, or ends."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def dying_at(n: int, monkeypatch: pytest.MonkeyPatch, *, half: bool) -> None:
    """Kill this process at the n-th record of a journal: before it, or when half is written."""
    write, count = JournalFileBackend.append_logs, [0]

    def append(self: JournalFileBackend, logs: list[dict[str, object]]) -> None:
        count[0] += 1
        if count[0] == n:
            if half:
                with open(self._file_path, "ab") as file:
                    file.write(b'{"op_code":4,"worker_id":"so')
            os.symlink(self._file_path, f"{self._file_path}.lock")  # it held the lock
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, logs)

    monkeypatch.setattr(JournalFileBackend, "append_logs", append)


@pytest.mark.core(1)
@pytest.mark.parametrize("half", [False, True])
def test_a_server_may_be_killed_at_any_record_of_the_journal(
    store: RunStore,
    queue: RunQueue,
    half: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tfm_core.sweeps.study._STALE_SECONDS", 0.0)
    driver = Driver(queue)
    sweep = driver.sweeps.create(a_plan(max_runs=3))
    for n in range(1, FIRST + 1):

        def work(n: int = n) -> None:
            dying_at(n, monkeypatch, half=half)
            Driver(queue).step()

        killed(work)
    driven(driver, store, sweep, valley)
    assert len(store.list()) == 3
    trials = trials_of(sweep)
    assert any(trial.why == "Its server ended before it started." for trial in trials)
    with_runs = [trial for trial in trials if trial.has_run]
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
        (b"\x00\xff garbage\n" * 3, "cannot be read"),
        (b"[]\n[]\n", "cannot be read"),
        (b'{"op_code":99,"worker_id":"w"}\n', "cannot be read"),
        (b'{"op_code":0,"worker_id":"w","study_name":"my","directions":[1]}\n', "the study “my”"),
        (b'{"op_code":0,"worker_id":"w","study_name":"mine"}\n', "cannot be read"),
    ],
)  # fmt: skip
def test_an_optuna_file_from_elsewhere_is_said_and_left_alone(
    driver: Driver, store: RunStore, sweep: Sweep, garbled: bytes, sentence: str
) -> None:
    sweep.journal.write_bytes(garbled)
    driver.step()
    found = driver.trouble(sweep.id) or ""
    assert "The journal" in found
    with pytest.raises(ValueError, match=sentence):
        trials_of(sweep)
    assert sweep.journal.read_bytes() == garbled
    assert store.list() == []


def test_a_study_of_other_fields_is_said_and_left_alone(driver: Driver, sweep: Sweep) -> None:
    import optuna
    from optuna.storages import JournalStorage

    storage = JournalStorage(JournalFileBackend(str(sweep.journal)))
    study = optuna.create_study(study_name=f"{sweep.id}-1", storage=storage)
    study.add_trial(
        optuna.trial.create_trial(
            value=1.0,
            params={"colour": 0.5},
            distributions={"colour": optuna.distributions.FloatDistribution(0, 1)},
        )
    )
    before = sweep.journal.read_bytes()
    with pytest.raises(ValueError, match="a trial in it varies “colour”"):
        trials_of(sweep)
    driver.step()
    assert "varies “colour”" in (driver.trouble(sweep.id) or "")
    assert sweep.journal.read_bytes().startswith(before)


def test_a_pickle_that_somebody_put_into_a_study_is_not_loaded(
    store: RunStore, queue: RunQueue, tmp_path: Path
) -> None:
    import pickle

    from tests.sweeps.made import RATES
    from tfm_core.sweeps.space import Range
    from tfm_core.sweeps.study import Study

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path}/exploded",)

    driver = Driver(queue)
    space = (RATES, Range("training.warmup", 0.0, 0.5))
    sweep = driver.sweeps.create(a_plan(search="cma-es", space=space, max_runs=30))
    for _run in range(12):
        driver.step()
        for run in waiting(store):
            ended(store, run, loss=valley(run.experiment))
    assert driver.trouble(sweep.id) is None  # its own CMA-ES is one
    study = Study(sweep, sweep.plan(), writes=True)
    trial = study.trials()[-1]
    assert study._storage is not None
    text = pickle.dumps(Bomb()).hex()
    study._storage.set_trial_system_attr(study._id(trial), "cma:optimizer:0", text)
    driver.step()
    driver.step()
    assert "CMA-ES state comes from another program" in (driver.trouble(sweep.id) or "")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "sweep.json is missing"),
        (b"{", "sweep.json is not JSON"),
        (b'{"version": 7}', "another version of the app"),
        (b'{"version": 1, "name": "a", "created": 5}', "value of “created” is invalid"),
        (b'{"version": 1, "name": "a"}', "“created” is missing"),
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
