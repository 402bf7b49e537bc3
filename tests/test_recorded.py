"""The recorded runs: small, whole, and reproducible by the code that ships them."""

import pytest

from tfm_core.recorded.build import RECORDINGS
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.training import checkpoints
from tfm_core.training.loop import build


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def test_together_they_take_three_megabytes_at_most():
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file()) <= 3e6


@pytest.mark.parametrize("run_id", RECORDINGS)
def test_every_part_of_a_recorded_run_can_be_read(store, run_id):
    run = store.get(run_id)
    curves = run.curves()
    assert run.problem is None
    assert run.meta.recorded
    assert run.status.state == "finished"
    assert len(curves.steps) > 100
    assert run.snapshot_steps()[0] == 0
    assert run.snapshot_steps()[-1] == run.experiment.training.steps
    for step in run.snapshot_steps():
        snapshot = run.snapshot(step)
        assert snapshot.attention
        assert all(len(value) == len(run.probe().items) for value in snapshot.attention.values())


@pytest.mark.parametrize("run_id", RECORDINGS)
def test_the_recorded_accuracy_is_that_of_the_recorded_weights(store, run_id):
    run = store.get(run_id)
    curves = run.curves()
    trainer = build(run.experiment)
    checkpoints.load(trainer, run.folder / "checkpoints" / "last")
    loss, accuracy, _ = trainer.objective.measure(trainer.model.eval(), "test")
    assert accuracy == pytest.approx(curves.test.last("accuracy"), abs=0.003)
    assert loss == pytest.approx(curves.test.last("loss"), rel=0.05)


@pytest.mark.parametrize("run_id", RECORDINGS)
def test_a_recorded_run_can_be_trained_further(store, run_id):
    steps = store.get(run_id).experiment.training.steps
    fork = store.fork(run_id, steps=steps + 50)
    trainer = build(fork.experiment)
    checkpoints.load(trainer, fork.folder / "checkpoints" / "last")
    assert trainer.step == steps
    assert fork.status.can_resume
