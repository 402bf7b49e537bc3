"""Each run has a GPU of its own. No GPU is needed to share them out."""

import dataclasses
import time

import pytest

from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.queue import local_workers, waiting_line
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status


@pytest.fixture(autouse=True)
def _two_gpus(monkeypatch):
    monkeypatch.setattr(local_workers, "gpu_names", lambda: ("cuda:0", "cuda:1"))


def training(store, device: str, state="running") -> Run:
    """Return a run that this process trains, as far as anybody can see."""
    run = store.create(tiny(), device=device)
    status = dataclasses.replace(
        run.status.with_process(process_id()), state=state, heartbeat=time.time()
    )
    write_status(run.folder, status)
    return run


def test_a_run_gets_the_gpu_it_asks_for_and_else_one_that_is_free(store):
    run = store.create(tiny(), device="cuda:0")
    assert local_workers.device_for(run, store.root) == "cuda:0"
    training(store, "cuda:0", state="paused")
    training(store, "cpu")
    assert local_workers.device_for(run, store.root) == "cuda:1"
    training(store, "cuda:1")
    with pytest.raises(waiting_line.Unavailable, match="all 2 are in use"):
        local_workers.device_for(run, store.root)


def test_what_is_no_gpu_of_this_machine_is_left_to_its_worker(store):
    training(store, "cuda:0")
    for device in ("cpu", "mps", "cuda:7"):
        assert local_workers.device_for(store.create(tiny(), device=device), store.root) == device


def test_the_queue_hands_out_gpus_and_says_which_and_who_waits_for_one(store, make_queue):
    """The workers find no GPU here, and say so of the one that they were given."""
    training(store, "cuda:0")
    queue = make_queue(max_running=3)
    queue.start()
    first = store.create(tiny(), device="cuda:0")
    queue.submit(first)
    wait_until(lambda: first.status.state == "failed", "the first run is told")
    assert first.status.reason.startswith("cuda:1 is not available: ")
    assert Run(first.folder).meta.device == first.status.device == "cuda:1"
    other = training(store, "cuda:1")
    second = store.create(tiny(), device="cuda:0")
    queue.submit(second)
    wait_until(lambda: waiting_line.start_errors.get(second.folder), "it says what it waits for")
    assert waiting_line.start_errors.get(second.folder).startswith("Waiting for a GPU")
    assert second.status.state == "queued"
    write_status(other.folder, dataclasses.replace(other.status, state="stopped"))
    wait_until(lambda: second.status.state == "failed", "it has its turn")
    assert second.status.device == "cuda:1"
