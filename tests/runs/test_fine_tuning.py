"""An opened model is trained further: everything, its last layers, or LoRA's matrices."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file

from tests.pretrained.with_tokenizer import CLS, SEP
from tfm_core import settings
from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import ConfigError, from_json, to_json
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.attention.trained import model_of, weight_histograms
from tfm_core.pretrained import base
from tfm_core.runs import own_sets
from tfm_core.runs.fine_tuning import Part, first_weights, from_scratch, tuned, why_not
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.training import checkpoints
from tfm_core.training.loop import build, train
from tfm_core.training.setup import new_model

READERS, WRITERS = ("bert",), ("gpt2", "llama")
SENTENCES = "\n".join(
    f"the cats {'the cat ' if number % 2 else 'cat cat '}{'the ' * (number % 3)}{number}\t"
    f"{'good' if number % 2 else 'bad'}"
    for number in range(71)
)
TEXT = "the cat sat on the mat and the dog sat on the log. " * 13


@pytest.fixture
def store(tmp_path, monkeypatch) -> RunStore:
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    return RunStore(recorded=None)


@pytest.fixture
def own(store):
    def make(kind, text=None, unit="words"):
        text = text or (SENTENCES if kind == "labels" else TEXT)
        prepared = prepare(inspect_text(kind, text, unit=unit))
        return own_sets.keep(prepared, store=store, visitor=None, settings=settings.read())

    return make


def short(experiment, steps=5, **training):
    changed = {"steps": steps, "learning_rate": 0.01, "snapshots": 3, "validate_every": steps}
    return experiment.replace(
        training=experiment.training.replace(**changed | training).model_dump(),
        model=experiment.model.replace(dropout=0.0).model_dump(),
    )


def kind_of(name):
    return "labels" if name in READERS else "text"


def weights(run):
    return dict(model_of(run)[0].named_parameters())


def changed(before, after):
    return {name for name in before if name in after and not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("trains", ["all", "last", "lora"])
@pytest.mark.parametrize("name", [*READERS, *WRITERS])
def test_what_is_trained_changes_and_nothing_else(name, trains, opened, own, store):
    parent = opened(name)
    experiment = short(tuned(parent, own(kind_of(name)), Part(trains, 1, 2)))
    run = store.create(experiment)
    assert execute(run).state == "finished"
    before, after = weights(parent), weights(run)
    moved = changed(before, after)
    assert set(after) - set(before) <= {"output.labels.weight", "output.labels.bias"}
    frozen = {one for one in before if ".layers.0." in one or "embedding" in one}
    if trains == "lora":
        assert moved == {one for one in after if one.endswith("in_projection.weight")}
    elif trains == "last":
        assert moved
        assert not moved & frozen
        assert any(".layers.1." in one for one in moved)
    else:
        assert moved & frozen


@pytest.mark.parametrize("trains", ["all", "last", "lora"])
@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_the_numbers_that_are_trained_are_counted_as_they_are(name, trains, opened, own):
    run = opened(name)
    experiment = tuned(run, own("labels" if name == "bert" else "text"), Part(trains, 1))
    with sets.below(run.folder.parent):
        trainer = build(experiment)
        found = trained(experiment.model, data_shape(experiment), experiment.task)
    assert found.n == sum(one.numel() for one in trainer.parameters)
    plain = sum(one.numel() for one in new_model_of(experiment, run).parameters())
    assert trainer.n_parameters == plain + found.n_added
    in_optimizer = sum(
        one.numel() for group in trainer.optimizer.param_groups for one in group["params"]
    )
    assert in_optimizer == found.n


def new_model_of(experiment, run):
    with sets.below(run.folder.parent):
        return new_model(experiment)


def test_it_begins_as_the_opened_model_and_from_scratch_does_not(opened, own):
    run = opened("gpt2")
    experiment = tuned(run, own("text"))
    before = weights(run)
    assert not changed(before, dict(new_model_of(experiment, run).named_parameters()))
    scratch = from_scratch(experiment)
    assert changed(before, dict(new_model_of(scratch, run).named_parameters()))
    assert (scratch.model, scratch.seed) == (experiment.model, experiment.seed)
    assert from_json(to_json(experiment)) == experiment


@pytest.mark.parametrize("trains", ["all", "lora"])
def test_it_learns_and_what_it_learned_is_seen(trains, opened, own, store):
    run = store.create(short(tuned(opened("bert"), own("labels"), Part(trains, rank=3)), 60))
    assert execute(run).state == "finished"
    with sets.below(store.root):
        task = text_task(run.experiment.task)
        example = look_at_text(run, "the cats the cat the")
    ids = task.src_vocabulary.encode(example.item["src"])
    assert (ids[0], ids[-1]) == (CLS, SEP)
    assert example.answer_text == "good"
    losses = [one["loss"] for one in events(run) if one["event"] == "step"]
    assert losses[-1] < losses[0] / 2


def events(run):
    lines = (run.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("trains", ["all", "last", "lora"])
def test_a_run_that_goes_on_from_its_checkpoint_ends_like_one_that_never_stopped(
    trains, opened, own, tmp_path
):
    run = opened("bert")
    experiment = short(tuned(run, own("labels"), Part(trains, 1, 2)), 6)
    with sets.below(run.folder.parent):
        whole = build(experiment)
        for _event in train(whole):
            pass
        first = build(experiment)
        for event in train(first):
            if type(event).__name__ == "Step" and event.step == 3:
                checkpoints.save(first, tmp_path / "last")
                break
        second = build(experiment)
        checkpoints.load(second, tmp_path / "last")
        assert second.step == 3
        for _event in train(second):
            pass
    for name, one in whole.model.state_dict().items():
        assert torch.equal(one, second.model.state_dict()[name]), name
    if trains == "lora":
        stored = load_file(tmp_path / "last" / checkpoints.FILE)
        assert any(name.endswith(".0.a.0") for name in stored)
        assert any(name.endswith(".0.b.2") for name in stored)


def test_a_fine_tuned_run_is_fine_tuned_again(opened, own, store):
    first = store.create(short(tuned(opened("gpt2"), own("text"), Part("lora", rank=2))))
    execute(first)
    again = tuned(first, own("text", "a dog and a cat and a log " * 9), Part("last", 1))
    assert not changed(weights(first), dict(new_model_of(again, first).named_parameters()))
    assert execute(store.create(short(again))).state == "finished"


def test_another_run_needs_neither_the_opened_model_nor_another_copy(opened, own, store):
    parent = opened("bert")
    experiment = short(tuned(parent, own("labels")))
    first = store.create(experiment)
    kept = base.path_in(first.folder, experiment.task.base)
    assert os.stat(kept).st_nlink > 1  # no copy on the disk
    store.delete(parent.id)
    store.empty_trash()
    second = store.create(experiment)
    assert execute(second).state == "finished"
    assert weight_histograms(second)  # reads the first weights too


def test_bad_input_gets_a_sentence(opened, own, store):
    reader, writer, labels = opened("bert"), opened("gpt2"), own("labels")
    for run, data, part, wanted in [
        (writer, labels, Part(), "this model needs"),
        (reader, own("text"), Part(), "this model needs"),
        (reader, labels, Part("lora", rank=99), "rank is 99"),
        (reader, labels, Part("last", 5), "at most 2: the model has no more layers"),
        (reader, own("labels", SENTENCES + "\n" + "the " * 99 + "\tgood"), Part(), "too long"),
        (writer, own("text", "abcdefghijklmnopqrstuvwxyz", "characters"), Part(), "it needs 40"),
    ]:
        with pytest.raises(StudentError, match=wanted):
            tuned(run, data, part)
    other = first_weights(writer)
    experiment = tuned(reader, labels)
    wrong = experiment.replace(task=experiment.task.replace(base=other).model_dump())
    run = store.create(wrong)
    status = execute(run)
    assert status.state == "failed"
    assert "another model" in status.reason
    missing = experiment.replace(task=experiment.task.replace(base="0" * 20).model_dump())
    with pytest.raises(StudentError, match="not on this machine"):
        store.create(missing)
    with pytest.raises(ConfigError, match="Random weights"):
        from_scratch(experiment).replace(task=experiment.task.replace(base="", trains="last"))


def test_a_model_that_was_not_opened_says_so(store, own):
    from tfm_core.choices.presets import PRESETS

    plain = store.create(next(iter(PRESETS.values())).experiment)
    assert why_not(plain) is not None
    with pytest.raises(StudentError, match="Hugging Face"):
        tuned(plain, own("labels"))
