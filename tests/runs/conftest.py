import contextlib
import json
import os

import psutil
import pytest

from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunStore
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.status import Status, write_status

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no folder here has pipes")


def end_workers(store: RunStore) -> None:
    """Kill the workers that a failed test left behind."""
    for run in store.list():
        mark = run.status.mark
        if run.status.is_alive and mark.host == this_host() and mark.pid != os.getpid():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself meanwhile
                psutil.Process(mark.pid).kill()


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    store = RunStore(tmp_path / "runs", recorded=tmp_path / "recorded")
    yield store
    end_workers(store)


@pytest.fixture
def make_queue(store):
    """Make queues of the store, which end with the test."""
    with contextlib.ExitStack() as ends:

        def make(**options) -> RunQueue:
            queue = RunQueue(store, **{"warm": 0, "limits": Limits(), **options})
            ends.callback(queue.close)
            return queue

        yield make


@pytest.fixture
def whole(store):
    """A run of 7 steps that was never interrupted."""
    run = store.create(tiny())
    assert execute(run).state == "finished"
    return run


@pytest.fixture
def end():
    """Make a run look ended: its state, and an events file."""

    def end(run: Run, state="stopped", step=5, **facts) -> Run:
        write_status(run.folder, Status(state, step=step, total_steps=7, **facts))
        line = json.dumps({"event": "step", "step": step, "loss": 0.5})
        (run.folder / "events.jsonl").write_text(line + "\n")
        last = run.folder / "checkpoints" / "last"
        last.mkdir(parents=True, exist_ok=True)
        (last / "checkpoint.safetensors").write_bytes(b"weights")
        return run

    return end
