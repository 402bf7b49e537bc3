"""The guided runs: found by what they are, split cleanly, judged and saved as torch would."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load

from tests.pages.guided_runs import guided_run
from tfm_core.inspect.attention.trained import data_of
from tfm_core.runs.store import RunStore
from tfm_core.studies import practice
from tfm_core.studies.practice import STUDY
from tfm_core.studies.study import runs_of


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("runs"), recorded=None)


@pytest.fixture(scope="module")
def run(store):
    return guided_run(store, "plain")


def test_the_runs_differ_in_one_thing_each():
    plain, early, augmented = (STUDY.experiment(arm).model_dump() for arm in STUDY.arms)
    assert early["training"].pop("patience") == 6
    assert plain["training"].pop("patience") == 0
    assert early == plain
    changed = {key for key, value in augmented["task"].items() if value != plain["task"][key]}
    assert changed == {"shift", "rotation", "scale"}


def test_a_guided_run_is_found_again_and_no_other(store, run):
    plain, early, _augmented = map(STUDY.experiment, STUDY.arms)
    other = store.create(plain.replace(seed=1))
    early = store.create(early)
    found = runs_of(STUDY, store.list())
    assert [one.id for one in found.shown.values()] == [run.id, early.id]
    assert found.by_arm["plain"][1].id == other.id


def test_splits_share_no_picture_and_the_turn_is_the_lowest_loss(run):
    counts, n_shared = practice.splits_of(STUDY.base)
    assert counts.sum(axis=1).to_dict() == {"train": 4000, "validation": 500, "test": 500}
    assert n_shared == 0
    assert (counts.nunique(axis=1) == 1).all()
    turn = practice.overfitting(run.curves())
    assert (turn["step"], turn["last_step"]) == (150, 300)
    assert turn["has_begun"]
    assert turn["waited"] == 3
    assert turn["validation_best"] == pytest.approx(0.9)
    assert turn["train_last"] < turn["train_best"]


def test_validation_chooses_the_lowest_loss(store, run):
    curves = run.curves()
    lower = run.curves()
    lower.validation = lower.validation.with_records(
        [{"step": 350, "loss": 0.1, "accuracy": 0.9, "sequence_accuracy": None}]
    )
    both = {"plain": (run, curves), "augmented": (run, lower)}
    assert practice.best_of(both) == ("augmented", 350, pytest.approx(0.1))
    assert not practice.overfitting(lower)["has_begun"]  # it still falls
    assert practice.best_of({}) is None


def test_a_run_with_patience_stands_for_itself_with_its_best_weights(store):
    patient = guided_run(store, "early", steps=2)
    last = guided_run(store, "plain", steps=2)
    assert practice.best_of({"early": (patient, patient.curves())}) == (
        "early", 150, pytest.approx(0.9),
    )  # fmt: skip
    assert practice.best_of({"plain": (last, last.curves())}) == ("plain", 300, pytest.approx(1.3))
    (patient.folder / "checkpoints" / "last" / "checkpoint.safetensors").unlink()
    assert practice.counting_model(patient)[1] == 2
    (last.folder / "checkpoints" / "best" / "checkpoint.safetensors").unlink()
    assert practice.counting_model(last)[1] == 2
    for run in (patient, last):
        store.delete(run.id)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_judgement_is_what_the_weights_that_count_say(run, split):
    evaluated = practice.evaluate(run, split)
    model, step = practice.counting_model(run)
    data = data_of(run.experiment)
    part = getattr(data, split)
    with torch.inference_mode():
        logits = model(data.normalise(part.images))
    assert evaluated.step == step == 3
    assert evaluated.loss == pytest.approx(float(F.cross_entropy(logits, part.labels)), rel=1e-5)
    assert evaluated.n_right == int((logits.argmax(-1) == part.labels).sum())
    confusion = evaluated.confusion()
    assert confusion.sum() == 500
    assert np.trace(confusion) == evaluated.n_right
    truth, said = int(part.labels[0]), int(logits[0].argmax())
    assert confusion[truth, said] > 0
    wrong = evaluated.wrong(500)
    assert len(wrong) == 500 - evaluated.n_right
    sure = evaluated.probabilities[wrong].max(1)
    assert list(sure) == sorted(sure, reverse=True)


def test_a_saved_model_gives_the_same_answers_and_one_with_a_wrong_name_is_refused(run):
    content, n_tensors, n_ignored, logits = practice.round_trip(run)
    np.testing.assert_array_equal(logits["loaded"], logits["trained"])
    assert abs(logits["fresh"] - logits["trained"]).max() > 0.01
    model, _step = practice.counting_model(run)
    weights = model.state_dict()
    assert load(content).keys() == weights.keys()
    np.testing.assert_array_equal(logits["misnamed"], logits["fresh"])  # nothing was loaded
    assert n_ignored == n_tensors == len(weights)
    content = practice.save_weights({f"x{k}": v for k, v in model.state_dict().items()})
    with pytest.raises(RuntimeError, match="Missing key"):
        practice.load_weights(model, content)
