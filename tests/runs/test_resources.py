"""What does not fit in memory is told by its parts, and the advice is one that helps."""

import re

import pytest
import torch

from tests.runs.waiting import tiny
from tfm_core import machine
from tfm_core.choices.config import from_query
from tfm_core.facts.memory import PROCESS_BYTES
from tfm_core.facts.storage import snapshots_bytes
from tfm_core.runs.disk import quota
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue import limits
from tfm_core.runs.queue.limits import TooLarge, always, needed
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.sentences import in_bytes
from tfm_core.training.objectives import TextObjective

GIB = 2**30


def wide(batch_size=32, **settings):
    """Return an experiment with 0.8 billion weights in four layers."""
    query = {
        "model.family": "decoder-only",
        "model.d_model": "4096",
        "model.n_heads": "32",
        "model.d_ff": "16384",
        "model.n_layers": "4",
        "task.name": "copy",
        "training.batch_size": str(batch_size),
    }
    return from_query(query | {name.replace("_", ".", 1): text for name, text in settings.items()})


@pytest.fixture
def has(monkeypatch):
    """Let this machine have so many bytes of memory."""

    def has(n_bytes):
        monkeypatch.setattr(machine, "memory", lambda **_: n_bytes)

    return has


def test_weights_and_batches_that_do_not_fit_are_told_with_what_would(has):
    has(4.5 * GIB)
    with pytest.raises(TooLarge) as refused:
        limits.check_memory(wide(), "cpu")
    said = str(refused.value)
    assert in_bytes(always(needed(wide()))) in said
    assert "4.5 GiB" in said
    assert "at any batch size" in said
    assert limits.out_of_memory(wide(), "cpu") == said  # the same sentence where it is noticed late
    has(int(always(needed(wide())) * 0.98))
    with pytest.raises(TooLarge, match="Use sgd, which needs"):
        limits.check_memory(wide(), "cpu")
    has(always(needed(wide())) + 1)
    limits.check_memory(wide(), "cpu")
    has(64 * GIB)
    limits.check_memory(wide(), "cpu")
    experiment = tiny(batch_size=4096)
    has(PROCESS_BYTES + needed(experiment).total - 1)
    said = limits.out_of_memory(experiment, "cpu")
    assert "a batch of 4096 needs" in said
    fitting = int(re.search(r"A batch size of (\d+) fits", said).group(1))
    assert needed(tiny(batch_size=fitting)).total < needed(experiment).total
    assert fitting == 2048


def test_a_batch_is_advised_that_fits_beside_what_others_hold_of_a_gpu(monkeypatch):
    experiment = tiny(batch_size=4096)
    monkeypatch.setattr(limits, "memory_of", lambda _device: 64 * GIB)
    monkeypatch.setattr(limits, "_left", lambda _device: needed(tiny(batch_size=700)).total)
    said = limits.out_of_memory(experiment, "cuda:0")
    assert "of 64.0 GiB" in said
    assert "a batch size of 512" in said
    monkeypatch.setattr(limits, "_left", lambda _device: 1000)
    assert "se a smaller model" in limits.out_of_memory(experiment, "cuda:0")


def test_a_step_that_runs_out_of_memory_ends_the_run_with_a_batch_that_fits(
    store, has, monkeypatch
):
    def runs_out(self, model, draw):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    experiment = tiny(batch_size=64)
    has(PROCESS_BYTES + needed(experiment).total - 1)
    run = store.create(experiment)
    monkeypatch.setattr(TextObjective, "learn", runs_out)
    status = execute(run)
    assert status.state == "failed"
    assert re.search(r"The memory of cpu is not enough.*A batch size of 32 fits", status.reason)
    assert "Tried to allocate" in (run.folder / "worker.log").read_text()


def test_a_start_that_cannot_fit_is_refused(store, has):
    has(GIB)
    run = store.create(wide())
    with pytest.raises(TooLarge, match="doesn't fit in the memory of cpu"):
        RunQueue(store, warm=0).submit(run)
    assert run.status.state == "stopped"


def test_a_process_that_is_confined_has_no_more_than_that():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    least = 1 << 40 if before[1] == resource.RLIM_INFINITY else before[1]
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (least, before[1]))
        assert machine.memory(swap=True) <= least
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_snapshots_that_the_disk_has_no_room_for_are_refused_before_the_start(store, monkeypatch):
    experiment = tiny()
    needs = snapshots_bytes(experiment, 20_000_000)
    limits.check_disk(experiment, needs)
    with pytest.raises(TooLarge, match=f"5 snapshots need {in_bytes(needs)}"):
        limits.check_disk(experiment, needs - 1)
    monkeypatch.setattr(quota, "_free", lambda _root: needs - 1)
    run = store.create(experiment)
    with pytest.raises(TooLarge, match="or delete runs"):
        RunQueue(store, warm=0).submit(run)
    assert run.status.state == "stopped"
