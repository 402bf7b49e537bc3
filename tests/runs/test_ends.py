"""How a run ends that does not train to its last step: said, and left for others."""

import resource
import signal

import pytest

from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.runs.process import recorder
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control
from tfm_core.runs.queue.hold import Hold, RunHeld
from tfm_core.runs.status import write_status


def test_a_run_that_diverges_fails_with_advice_and_keeps_its_checkpoint(store):
    run = store.create(tiny(steps=400, learning_rate=10, optimizer="sgd", clip_norm=0, warmup=0))
    execute(run, *stopping_at(1, run))
    status = execute(run)
    assert status.state == "failed"
    assert "learning rate 10 is probably too high; try 0.1." in status.reason
    assert run.has_checkpoint


def test_a_missing_device_and_a_damaged_experiment_or_checkpoint_are_said(store, whole):
    run = store.create(tiny(), device="cuda:99")
    status = execute(run)
    assert status.state == "failed"
    assert status.reason.startswith("cuda:99 is not available:")
    run = store.create(tiny())
    (run.folder / "experiment.json").write_text("{")
    status = execute(run)
    assert (status.state, status.reason) == ("failed", run.problem)
    fork = store.fork(whole.id, steps=11)
    (fork.folder / "checkpoints" / "last" / "checkpoint.safetensors").write_bytes(b"torn")
    status = execute(fork)
    assert status.state == "failed"
    assert "checkpoint last is damaged" in status.reason


def test_a_run_that_is_held_is_left_alone(store):
    run = store.create(tiny())
    with Hold(run.folder), pytest.raises(RunHeld, match="Another process trains"):
        execute(run)
    assert run.status.state == "queued"


def test_who_reads_that_a_run_has_ended_may_go_on_with_it_at_once(store, monkeypatch):
    run, is_free = store.create(tiny()), []

    def written(folder, status, *, lasting):
        write_status(folder, status, lasting=lasting)
        if not status.is_active:
            Hold(folder, patience=0.0).release()
            is_free.append(True)

    monkeypatch.setattr(recorder, "write_status", written)
    execute(run, *stopping_at(3, run))
    assert run.status.state == "stopped"
    assert is_free == [True]


def test_a_file_that_may_not_grow_is_said(store):
    run = store.create(tiny())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, before[1]))
        status = execute(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert status.state == "failed"
    assert "(File too large)" in status.reason
    assert run.status.state == "failed"
    assert execute(run).state == "finished"


def test_a_run_that_takes_too_long_is_stopped(store):
    run = store.create(tiny(steps=100_000))
    status = execute(run, Control(run.folder, max_seconds=0.2))
    assert status.state == "stopped"
    assert "the limit here" in status.reason
    assert run.has_checkpoint
