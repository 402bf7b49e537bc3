"""The callbacks report what the loops of Transformers and Lightning do."""

import importlib
import threading
import types

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import tfm_core
from tests.looking.loops import Writer, named, probe
from tfm_core.looking import adapters
from tfm_core.sentences import StudentError

IDS = torch.randint(0, 7, (32, 5), generator=torch.Generator().manual_seed(0))


def test_a_look_is_taken_each_100_steps_unless_another_number_is_given(monkeypatch) -> None:
    taken = []
    monkeypatch.setattr(adapters, "Watched", lambda _model, **given: taken.append(given["every"]))
    for given in ({}, {"every": 7}):
        adapters._Reports(probe(), given)._open(Writer(), 2000)
    assert taken == [100, 7]


@pytest.mark.parametrize("name", ["for_trainer", "for_lightning"])
def test_without_the_package_a_sentence_says_what_to_install(name, monkeypatch) -> None:
    def missing(module: str) -> None:
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(StudentError, match="pip install"):
        getattr(tfm_core.look, name)(probe=probe())


@pytest.fixture
def transformers():
    import tfm_core.data.torchvision_import  # noqa: F401  # before Transformers, which asks for it

    pytest.importorskip("accelerate")
    return pytest.importorskip("transformers")


def gpt(transformers):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=7, n_positions=8, n_embd=12, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def trainer(transformers, tmp_path, callback, **settings):
    rows = [{"input_ids": row, "labels": row} for row in IDS]
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"), max_steps=6, logging_steps=1, per_device_train_batch_size=4,
        report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, **settings,
    )  # fmt: skip
    return transformers.Trainer(
        gpt(transformers), arguments, train_dataset=rows, eval_dataset=rows[:8],
        callbacks=[callback],
    )  # fmt: skip


def test_the_trainer_of_transformers(transformers, store, tmp_path) -> None:
    callback = tfm_core.look.for_trainer(
        probe={"input_ids": probe()}, tokens=named(probe()), every=3, name="GPT-2", store=store
    )
    trainer(transformers, tmp_path, callback, eval_strategy="steps", eval_steps=3).train()
    (run,) = store.kept()
    curves = run.curves()
    assert (run.meta.name, run.status.state, run.status.step) == ("GPT-2", "finished", 6)
    assert curves.steps["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(curves.steps["learning_rate"]).all()
    assert curves.validation["step"].tolist() == [3, 6]
    assert run.snapshot_steps() == [0, 3, 6]
    assert len(run.snapshot(6).attention) == 2


def test_an_error_in_the_trainer_is_the_runs(transformers, store, tmp_path) -> None:
    callback = tfm_core.look.for_trainer(probe={"input_ids": probe()}, store=store)
    loop = trainer(transformers, tmp_path, callback)
    loop.model.lm_head.register_forward_hook(
        lambda module, *_: 1 / 0 if module.training else None  # not while it is looked at
    )
    with pytest.raises(ZeroDivisionError), callback:
        loop.train()
    assert store.kept()[0].status.state == "failed"


def test_a_loop_that_is_gone_without_a_word_is_the_runs(store, monkeypatch) -> None:
    package = types.SimpleNamespace(TrainerCallback=object)
    monkeypatch.setattr(importlib, "import_module", lambda name: package)
    monkeypatch.setattr(adapters, "_LOST_SECONDS", 0.01)
    callback = tfm_core.look.for_trainer(probe=probe(), store=store)
    state = types.SimpleNamespace(is_world_process_zero=True, max_steps=9, global_step=1)

    def train() -> None:  # as Transformers' Trainer, which tells no callback of an error
        callback.on_train_begin(None, state, None, model=Writer())
        callback.on_log(None, state, None, logs={"loss": 1.0})
        for thread in threads():
            assert thread.is_alive()
        raise ZeroDivisionError

    def threads() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name == "look.for_trainer"]

    with pytest.raises(ZeroDivisionError):
        train()
    for thread in threads():
        thread.join(60)
    (run,) = store.kept()
    assert run.status.state == "failed"
    assert "step 1 without saying why" in run.status.reason
    assert run.curves().steps["loss"].tolist() == [1.0]


@pytest.fixture
def lightning():
    return pytest.importorskip("lightning.pytorch")


def learner(lightning, fails_at=None):
    class Learner(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Writer()

        def forward(self, ids):
            return self.model(ids)

        def loss(self, batch):
            (ids,) = batch
            return F.cross_entropy(self(ids)[:, :-1].transpose(1, 2), ids[:, 1:])

        def training_step(self, batch, index):
            if index == fails_at:
                raise ZeroDivisionError("in a batch")
            self.log("train_acc", 0.5)
            return self.loss(batch)

        def validation_step(self, batch, index):
            self.log("val_loss", self.loss(batch))
            self.log("val_acc", 0.25)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    return Learner()


def fit(lightning, model, callback):
    loader = DataLoader(TensorDataset(IDS), 8)
    loop = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
    )  # fmt: skip
    loop.fit(model, loader, loader)


@pytest.mark.filterwarnings("ignore")
def test_lightning_and_its_errors_are_the_runs(lightning, store) -> None:
    callback = tfm_core.look.for_lightning(probe=probe(), every=4, store=store)
    fit(lightning, learner(lightning), callback)
    (run,) = store.kept()
    curves = run.curves()
    assert (run.status.state, run.status.step, run.status.total_steps) == ("finished", 8, 8)
    assert curves.steps["step"].tolist() == list(range(1, 9))
    assert curves.validation["accuracy"].tolist() == [0.25, 0.25]
    assert run.snapshot_steps() == [0, 4, 8]
    callback = tfm_core.look.for_lightning(probe=probe(), store=store)
    with pytest.raises(ZeroDivisionError):
        fit(lightning, learner(lightning, fails_at=2), callback)
    run = store.kept()[0]
    assert run.status.state == "failed"
    assert "in a batch" in run.status.reason
