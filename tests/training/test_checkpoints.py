"""Checkpoints: whole or not at all, and damage is said."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.training.test_loop import experiment
from tfm_core.training import checkpoints
from tfm_core.training.checkpoints import FILE, CheckpointDamaged
from tfm_core.training.loop import build, train

pytestmark = pytest.mark.quick

MAPS = Path("/proc/self/maps")


def test_the_model_alone_can_be_read_back(tmp_path):
    trainer = build(experiment(model={"tie_embeddings": True}))
    list(train(trainer))
    checkpoints.save(trainer, tmp_path)
    model, step = checkpoints.load_model(trainer.experiment, tmp_path)
    assert step == 6
    assert not model.training
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


def test_a_checkpoint_is_on_the_disk_before_its_name_relies_on_it(tmp_path, monkeypatch):
    done = []
    for module, name in (
        (checkpoints, "sync_file"),
        (checkpoints, "sync_folder"),
        (checkpoints, "replace"),
    ):
        monkeypatch.setattr(module, name, _noting(done, name, getattr(module, name)))
    checkpoints.save(build(experiment()), tmp_path / "last")
    assert done[-3:] == [
        ("sync_file", f"{FILE}.new"),
        ("replace", f"{FILE}.new"),
        ("sync_folder", "last"),
    ]
    assert ("sync_folder", tmp_path.name) in done[:-3], "nor is its folder's own name forgotten"


def _noting(done, name, function):
    def noted(path, *rest):
        done.append((name, Path(path).name))
        return function(path, *rest)

    return noted


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 64])
def test_a_damaged_checkpoint_is_said(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(CheckpointDamaged, match="is damaged and cannot be read"):
        checkpoints.load(build(experiment()), tmp_path)


def test_a_cut_off_missing_or_foreign_checkpoint_is_said(tmp_path):
    with pytest.raises(CheckpointDamaged, match="There is no checkpoint"):
        checkpoints.load(build(experiment()), tmp_path)
    checkpoints.save(build(experiment()), tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointDamaged, match="is damaged and cannot be read"):
        checkpoints.load(build(experiment()), tmp_path)
    checkpoints.save(build(experiment()), tmp_path)
    with pytest.raises(CheckpointDamaged, match="a model with another shape"):
        checkpoints.load(build(experiment(model={"d_model": 32})), tmp_path)


def test_a_failed_write_keeps_the_one_before(tmp_path, monkeypatch):
    trainer = build(experiment())
    checkpoints.save(trainer, tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(trainer, tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.skipif(not MAPS.exists(), reason="the system does not say what is mapped")
def test_a_checkpoint_that_was_loaded_is_no_longer_open(tmp_path):
    """A file that is still mapped cannot be replaced by the next checkpoint on Windows."""
    trainer = build(experiment(training={"patience": 9}))
    list(train(trainer))
    checkpoints.save(trainer, tmp_path)
    again = build(trainer.experiment)
    checkpoints.load(again, tmp_path)
    checkpoints.load_best(again, tmp_path)
    assert again.best is not None
    assert str(tmp_path) not in MAPS.read_text(encoding="utf-8")


def test_weights_that_are_no_numbers_answer_nothing(tmp_path):
    trainer = build(experiment())
    with torch.no_grad():
        next(trainer.model.parameters()).fill_(torch.nan)
    checkpoints.save(trainer, tmp_path)
    with pytest.raises(CheckpointDamaged, match="are NaN"):
        checkpoints.load_model(trainer.experiment, tmp_path)


@pytest.mark.parametrize(
    "facts", ["[]", '{"step": 1e400, "seconds": 1, "scaler": {}}', '{"step": -1}', "1" * 5_000, "["]
)
def test_what_a_checkpoint_says_of_itself_is_checked(tmp_path, facts):
    save_file({"x": torch.zeros(1)}, tmp_path / FILE, {"trainer": facts})
    with pytest.raises(CheckpointDamaged, match="is damaged and cannot be read"):
        checkpoints.load(build(experiment()), tmp_path)


def test_the_state_of_another_optimiser_is_said(tmp_path):
    trainer = build(experiment())
    checkpoints.save(trainer, tmp_path)
    with safe_open(tmp_path / FILE, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = file.metadata()
    save_file({**tensors, "optimizer/nobody/exp_avg": torch.zeros(1)}, tmp_path / FILE, facts)
    with pytest.raises(CheckpointDamaged, match="lacks the state of this optimiser"):
        checkpoints.load(build(experiment()), tmp_path)
