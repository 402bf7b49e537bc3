"""A run goes on on another device than it was on.

No GPU is needed for it: a checkpoint holds tensors of the CPU wherever it was written, so a run
that says it was on one differs from those here in that word alone. What a GPU itself computes is in
``tests/training/test_loop.py``, where there is one.
"""

import dataclasses
import json

import pytest

from tests.runs.comparing import assert_same, stopping_at
from tests.runs.waiting import tiny
from tfm_core.cli import main
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.run import Run, RunDamaged
from tfm_core.runs.status import write_status
from tfm_core.training import checkpoints
from tfm_core.training.loop import build

GPUS = ("cuda:0", "cuda:1", "mps")


def left_on(device: str, store, experiment=None) -> Run:
    """Return a run of 7 steps that stopped after 4 on a device that is not here."""
    run = store.create(experiment or tiny())
    assert execute(run, *stopping_at(4, run)).state == "stopped"
    run.write_meta(dataclasses.replace(run.meta, device=device))
    write_status(run.folder, dataclasses.replace(run.status, device=device))
    return Run(run.folder)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)


@pytest.mark.parametrize("device", GPUS)
def test_a_run_of_a_gpu_goes_on_on_the_cpu(device, whole, store):
    run = left_on(device, store)
    assert f"{device} is not available: " in execute(run).reason
    assert run.status.reason.endswith("Use cpu.")

    RunQueue(store).resume(run, "cpu")
    assert (run.status.state, run.status.device, run.meta.device) == ("queued", "cpu", "cpu")
    assert execute(Run(run.folder)).state == "finished"
    assert_same(whole, run)
    assert run.meta.begun_on == device


def test_a_run_goes_there_and_back_and_keeps_all_else_that_is_known_of_it(store):
    run = left_on("cuda:0", store)
    store.rename(run.id, "Called otherwise")
    before = json.loads((run.folder / "meta.json").read_text())
    for device in ("cpu", "mps", "cuda:0"):
        Run(run.folder).move_to(device)
    assert json.loads((run.folder / "meta.json").read_text()) == before | {"begun_on": "cuda:0"}
    assert Run(run.folder).meta.name == "Called otherwise"


def test_the_scale_of_an_fp16_loss_goes_on_on_the_cpu(store):
    run = left_on("cuda:0", store, tiny(precision="fp16"))
    folder, trainers = run.folder / "checkpoints" / "last", [build(run.experiment) for _ in "ab"]
    checkpoints.load(trainers[0], folder)
    trainers[0].scaler.load_state_dict(trainers[0].scaler.state_dict() | {"scale": 512.0})
    checkpoints.save(trainers[0], folder)
    checkpoints.load(trainers[1], folder)
    assert trainers[1].scaler.get_scale() == 512.0
    run.move_to("cpu")
    assert execute(run).state == "finished"


def test_a_run_whose_device_cannot_be_noted_stays_where_it_is(store):
    run = left_on("cuda:0", store)
    (run.folder / "meta.json").write_text("{")
    with pytest.raises(RunDamaged, match=r"meta\.json"):
        Run(run.folder).move_to("mps")


def test_the_command_line_goes_on_elsewhere_and_says_what_changes(store, monkeypatch, capsys):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    run = left_on("cuda:0", store, tiny(precision="bf16"))
    assert main(["resume", run.id]) == 2
    assert capsys.readouterr().err.endswith("Use cpu.\n")
    assert run.status.state == "stopped", "what cannot go on is as it was"

    assert main(["further", run.id, "--steps", "6", "--device", "cpu", "--quiet"]) == 0
    (copy,) = (other for other in store.kept() if other.id != run.id)
    assert (copy.meta.parent, copy.status.step, copy.meta.device) == (run.id, 6, "cpu")

    assert main(["resume", run.id, "--device", "cpu"]) == 0
    said = capsys.readouterr().err
    assert "continue as on cuda:0" in said
    assert "Dropout draws different values." in said
    assert "The precision stays bf16" in said
    assert Run(run.folder).status.state == "finished"
