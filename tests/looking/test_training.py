"""Loops of one's own, of Transformers and of Lightning are recorded, and say how they went."""

import importlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tfm_core
from pages.app.runs import run_words
from tests.looking.loops import HEADS, LAYERS, WORDS, Writer, named, probe, trained
from tfm_core.choices.config import ForeignModelConfig
from tfm_core.export import bundle, importer
from tfm_core.export.exports import EXPORTS
from tfm_core.inspect import stage
from tfm_core.looking import adapters
from tfm_core.probe.labels import kinds_of, modules_by_kind
from tfm_core.runs import notebook
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.studies import symptoms as diagnosis


def watched(store, model=None, **given):
    given = {"tokens": named(probe()), **given}
    model = Writer() if model is None else model
    return tfm_core.look.training(model, probe=probe(), store=store, **given)


def test_a_run_holds_curves_maps_words_and_how_it_ended(store) -> None:
    run = store.get(trained(store, steps=6, every=2, name="Mine").id)
    curves = run.curves()
    assert (run.meta.name, run.status.state, run.status.step) == ("Mine", "finished", 6)
    assert run.damage is None
    assert curves.steps["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(curves.steps["loss"]).all()
    assert curves.steps["accuracy"].shape == (6,)
    assert len(curves.validation) == 1
    assert run.snapshot_steps() == [0, 2, 4, 6]
    model = run.experiment.model_as(ForeignModelConfig)
    assert model.past == ("blocks.0", "blocks.1")
    assert model.class_name == "Writer"
    assert model.n_parameters == sum(one.numel() for one in Writer().parameters())
    assert not [path for path in run.folder.iterdir() if path.name.startswith(".")]
    run = trained(store, answers=lambda model: ["a b", "x"], truth=["a b", "c d"])
    shown = stage.read_stage(run)
    assert shown.steps == (0, 2, 4, 6)
    assert shown.maps is not None
    assert shown.maps.weights.shape == (4, LAYERS, HEADS, 5, 5)
    assert tuple(shown.maps.key) == WORDS[:5]
    assert [answer["right"] for answer in shown.frames[-1]["answers"]] == [True, False]


@pytest.mark.parametrize("steps", [399, 400])
def test_losses_that_are_no_numbers_are_counted_whatever_the_last_one_is(store, steps) -> None:
    with watched(store, every=1000) as loop:
        for step in range(1, steps + 1):
            loop.step(math.nan if step % 20 == 0 else torch.tensor(2.0))
    status, curves = store.get(loop.run.id).status, loop.run.curves()
    assert status.state == "finished"
    assert f"{steps // 20} of {steps} losses are not numbers, the first at step 20" in status.reason
    assert run_words.symptom_marks(loop.run) == [(20, "NaN")]
    assert np.isnan(curves.steps["loss"][curves.steps["step"] == 20]).all()


def test_a_loop_that_learns_nothing_is_told_so_and_what_guessing_is(store) -> None:
    with watched(store) as loop:  # a Writer chooses among seven words: ln 7 = 1.9459
        for _step in range(200):
            loop.step(1.95)
        loop.measured(1.95, accuracy=1 / 7)
    curves = loop.run.curves()
    assert curves.started["start_loss"] == pytest.approx(1.9459, abs=1e-4)
    assert curves.started["chance"] == pytest.approx(1 / 7)
    found = diagnosis.of_run(loop.run, curves, loop.run.snapshot_steps())
    assert [(one.kind, one.cures) for one in found] == [("at-chance", ())]


def test_no_guessing_is_drawn_where_the_first_loss_is_another(store) -> None:
    with watched(store) as loop:
        loop.step(0.7)
    assert "start_loss" not in loop.run.curves().started


def test_the_maps_are_those_of_the_model_at_that_step(store) -> None:
    model = Writer()
    before = tfm_core.look(model, probe())
    run = trained(store, model=model, steps=3, every=3)
    after = tfm_core.look(model, probe())
    (kind,) = modules_by_kind(run.experiment)
    for seen, step in ((before, 0), (after, 3)):
        snapshot = run.snapshot(step)
        for layer, module in enumerate(modules_by_kind(run.experiment)[kind]):
            maps = seen.maps[f"blocks.{layer}"].weights.numpy()
            np.testing.assert_allclose(snapshot.attention[module], maps, atol=1e-3)
            assert not np.triu(np.ones((5, 5), bool), 1)[snapshot.masks[module][0, 0]].any()


class Pair(nn.Module):
    """An encoder and a decoder of PyTorch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 12)
        self.body = nn.Transformer(12, 2, 1, 2, 24, batch_first=True)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        return self.body(self.embed(src), self.embed(tgt), tgt_mask=mask, tgt_is_causal=True)


def test_three_kinds_of_maps_or_none_are_kept(store) -> None:
    src, tgt = probe(2, 5), probe(2, 3)
    with tfm_core.look.training(
        Pair(),
        probe={"src": src, "tgt": tgt},
        tokens=named(src),
        tgt_tokens=named(tgt),
        store=store,
    ) as run:
        run.step(1.0)
    assert set(kinds_of(run.run.experiment)) == {"encoder", "decoder", "cross"}
    shown = stage.read_stage(run.run, "cross")
    assert shown.maps is not None
    assert shown.maps.weights.shape[-3:] == (2, 3, 5)
    assert run.run.experiment.model_as(ForeignModelConfig).cross
    with tfm_core.look.training(nn.Linear(3, 3), probe=torch.ones(2, 3), store=store) as run:
        run.step(2.0)
    assert run.run.status.state == "finished"
    assert stage.read_stage(run.run).surface == "none"
    assert "No attention was found" in run.run.curves().started["remark"]


def test_the_loop_that_breaks_off_says_why(store) -> None:
    run = watched(store)
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError("division by zero")
    assert run.run.status.state == "failed"
    assert run.run.status.reason.startswith("ZeroDivisionError: division by zero")
    assert any("division by zero" in line for line in run.run.log_tail())
    run = watched(store)
    with pytest.raises(KeyboardInterrupt), run:
        raise KeyboardInterrupt
    assert run.run.status.state == "stopped"


def test_a_loss_that_is_no_number_is_a_failure_unless_it_recovers(store) -> None:
    with watched(store) as run:
        run.step(1.0)
        for _step in range(10):
            run.step(torch.tensor(math.nan))
    assert run.run.status.state == "failed"
    assert "not a number from step 2 on" in run.run.status.reason
    with watched(store) as run:
        run.step(math.inf)
        run.step(1.0)
    assert run.run.status.state == "finished"


def test_a_loop_that_ends_early_is_stopped(store) -> None:
    with watched(store, steps=10) as run:
        run.step(1.0)
    assert run.run.status.state == "stopped"
    assert "step 1 of 10" in run.run.status.reason


@pytest.mark.usefixtures("forked_all")
def test_a_killed_process_is_interrupted(tmp_path) -> None:
    code = textwrap.dedent("""
        import tfm_core, time
        from tests.looking.loops import Writer, probe
        run = tfm_core.look.training(Writer(), probe=probe())
        run.step(1.0)
        print(run.run.id, flush=True)
        time.sleep(600)
    """)
    env = {**os.environ, "TFM_RUNS_DIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    run = Run(tmp_path / process.stdout.readline().decode().strip())
    assert run.status.state == "running"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert run.status.state == "interrupted"
    assert not run.can_resume


@pytest.mark.core(1)
@pytest.mark.usefixtures("forked_all")
@pytest.mark.parametrize(
    ("steps", "last", "state"),
    [(9, "1 / 0", "failed"), (9, "pass", "stopped"), (1, "pass", "finished")],
)
def test_a_program_that_ends_without_closing_ends_its_run(tmp_path, steps, last, state) -> None:
    code = textwrap.dedent(f"""
        import tfm_core
        from tests.looking.loops import Writer, probe
        run = tfm_core.look.training(Writer(), probe=probe(), steps={steps})
        run.step(1.0)
        print(run.run.id, flush=True)
        {last}
    """)
    env = {**os.environ, "TFM_RUNS_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    run = Run(tmp_path / ended.stdout.decode().strip())
    assert run.status.state == state
    if state == "failed":
        assert "ZeroDivisionError: division by zero" in run.status.reason
        assert "line 7" in (run.folder / "worker.log").read_text()


def test_a_full_disk_ends_the_recording_and_not_the_training(store, monkeypatch) -> None:
    model = Writer()
    with watched(store, model, every=1) as run:
        run.step(1.0)

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("tfm_core.runs.snapshots.write_snapshot", full)
        with pytest.warns(RuntimeWarning, match="The recording ended at step 2"):
            run.step(1.0)
        run.step(1.0)
    assert run.run.status.state == "failed"
    assert "disk is full" in run.run.status.reason


def test_a_look_that_fails_ends_the_looks_and_not_the_training(store) -> None:
    model = Writer()
    with watched(store, model, every=1) as run:
        model.head.register_forward_hook(lambda *_: 1 / 0)
        with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
            run.step(1.0)
        run.step(1.0)
    assert run.run.status.state == "finished"
    assert "No maps from step 1 on" in run.run.status.reason
    assert run.run.snapshot_steps() == [0]


def test_the_model_and_its_randomness_are_left_as_they_were(store) -> None:
    def losses(record: bool) -> list[float]:
        torch.manual_seed(1)
        model = nn.Sequential(Writer(), nn.Dropout(0.5))
        learner, found = torch.optim.SGD(model.parameters(), 0.1), []
        run = watched(store, model, every=1) if record else None
        for _ in range(3):
            loss = model(probe()).square().mean()
            learner.zero_grad()
            loss.backward()
            learner.step()
            found.append(loss.item())
            if run is not None:
                run.step(loss)
                assert model.training
        if run is not None:
            run.close()
        return found

    assert losses(record=True) == losses(record=False)


def test_it_is_exported_and_taken_in_again(store, tmp_path) -> None:
    run = trained(store, answers=lambda model: ["a", "b"])
    content = bundle.bundle(run)
    taken = importer.import_run(io.BytesIO(content), RunStore(tmp_path / "other", recorded=None))
    assert taken.experiment == run.experiment
    assert taken.snapshot_steps() == run.snapshot_steps()
    assert taken.curves().steps["loss"].tolist() == run.curves().steps["loss"].tolist()


def test_other_exports_hold_it_or_say_why_not(store) -> None:
    run = trained(store)
    for export in EXPORTS:
        refusal = export.refusal(run)
        if export.needs_weights:
            assert "another program" in str(refusal)
        else:
            assert refusal is None
            assert export.make(run)
    assert "Writer" in notebook.open_run(run.id, store=store)._repr_html_()


def test_the_app_cannot_steer_it(store) -> None:
    with watched(store) as run, pytest.raises(StudentError, match="another program"):
        run.run.request("stop")
    with pytest.raises(StudentError):
        store.fork(run.run.id, steps=100)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"every": 0}, "every is 0"),
        ({"token": []}, "has no token; it takes tokens"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"tokens": "abcde"}, "must be a list of names"),
        ({"tokens": [["a"] * 6] * 2}, "6 names, but the maps have 5"),
        ({"tokens": [["a"] * 5, ["a"] * 5], "truth": ["a"]}, "truth must be a list of 2 texts"),
        ({"answers": lambda model: "no"}, "answers must return a list"),
        ({"answers": lambda model: ["one"]}, "1 texts for 2 examples"),
    ],
)
def test_what_cannot_be_shown_is_said_before_a_run_begins(store, given, words) -> None:
    with pytest.raises(StudentError, match=words):
        watched(store, **given)
    assert not store.kept()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"loss": torch.ones(3)}, "3 elements"),
        ({"loss": "low"}, "loss is str, not a number"),
        ({"loss": None}, "loss is NoneType"),
        ({"loss": 1.0, "accuracy": 97.5}, "from 0 to 1"),
        ({"loss": 1.0, "step": 0}, "steps count upwards"),
    ],
)
def test_what_is_no_number_is_refused(store, values, words) -> None:
    with watched(store) as run, pytest.raises(StudentError, match=words):
        run.step(**values)


def test_a_long_run_keeps_few_lines_and_looks_ever_less_often(store, monkeypatch) -> None:
    monkeypatch.setattr("tfm_core.looking.training.MAX_SNAPSHOTS", 4)
    with watched(store, every=10) as run:
        for _ in range(20_000):
            run.step(1.0)
    lines = (run.run.folder / "events.jsonl").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert sum(one["event"] == "step" for one in kept) < 4_000
    assert len(run.run.snapshot_steps()) < 60
    assert kept[-1]["event"] == "finished"


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
        str(tmp_path / "out"),
        max_steps=6,
        logging_steps=1,
        per_device_train_batch_size=4,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        **settings,
    )
    return transformers.Trainer(
        gpt(transformers),
        arguments,
        train_dataset=rows,
        eval_dataset=rows[:8],
        callbacks=[callback],
    )


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
    assert "step 1 without an error message" in run.status.reason
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
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback],
    )
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
