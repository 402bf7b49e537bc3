"""Sweeps of tiny runs, in a store of a test's own, with a queue whose thread does not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.conftest import end_workers
from tests.sweeps.made import a_plan
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.sweeps.driver import Driver
from tfm_core.sweeps.plan import Plan
from tfm_core.sweeps.store import Sweep


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    store = RunStore(tmp_path / "runs", recorded=None)
    yield store
    end_workers(store)


@pytest.fixture
def queue(store: RunStore) -> RunQueue:
    """A queue that starts nothing: a test ends its runs as a worker would."""
    return RunQueue(store, max_running=2, warm=0, limits=Limits())


@pytest.fixture
def driver(queue: RunQueue) -> Driver:
    return Driver(queue)


@pytest.fixture
def sweep(driver: Driver) -> Sweep:
    return driver.sweeps.create(a_plan())


@pytest.fixture
def plan() -> Plan:
    return a_plan()
