"""The recorded runs: small, whole, and reproducible by the code that ships them."""

import compileall
import re
import shutil

import numpy as np
import pytest
import torch

from tests.nightly import IS_NIGHTLY
from tests.probe.expected_masks import expected_mask
from tfm_core.data.image_data import is_here
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import score
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.heads import table_of_snapshot
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.speed.report import (
    COMPARISONS,
    LENGTHS,
    MEASURED,
    is_equal,
    recorded,
    recorded_times,
)
from tfm_core.recorded import NAMES
from tfm_core.recorded.build import RECORDINGS, place_of
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.studies import grokking, superposition
from tfm_core.training import checkpoints
from tfm_core.training.loop import build

ONE_A_FAMILY = list(
    {one.experiment.model.family: run_id for run_id, one in RECORDINGS.items()}.values()
)


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def test_what_is_there_is_what_the_command_makes_in_18_600_kilobytes():
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file()) <= 18.6e6
    assert set(RECORDED.glob("**/recorded-*")) == {place_of(run_id) for run_id in RECORDINGS}
    assert {path.name for path in RECORDED.parent.glob("*.jsonl")} == {
        f"speed-{name}.jsonl" for name in MEASURED
    }


def test_recorded_tables_and_toy_models_are_those_of_their_weights(store):
    run = store.get("recorded-grokking-decay")
    steps = grokking.table_steps(run)
    assert len(steps) == 27
    right, _trained = grokking.sum_table(run, steps[-1])
    model, step = model_of(run)
    assert step == steps[-1]
    answers = grokking._logits(model, len(right)).argmax(-1)
    assert (right == (answers == grokking._answers(len(right)))).mean() > 0.999
    vectors, biases, (shares, shapes) = superposition.recorded()
    assert (superposition.shares_of(vectors[:, -1], biases[:, -1]) > 0.99 * shares).all()
    assert (len(vectors), shapes[-1]) == (5, "pentagon")
    for kept, (_step, trained, _biases) in zip(
        vectors[1, :9], superposition.train(1), strict=False
    ):
        np.testing.assert_allclose(kept, trained, atol=2e-3)


def test_they_are_listed_by_exact_ids_once_python_has_written_bytecode_beside_them(tmp_path):
    large = shutil.ignore_patterns("snapshots", "weights", "checkpoints")
    package = shutil.copytree(RECORDED.parent, tmp_path / "recorded", ignore=large)
    assert compileall.compile_dir(package, quiet=1)
    assert list(package.rglob("*.pyc"))
    store = RunStore(tmp_path / "runs", recorded=package / RECORDED.name)
    for found, is_lesson in ((store.list(), False), (store.lessons(), True)):
        ids = [run_id for run_id, one in RECORDINGS.items() if one.is_lesson == is_lesson]
        assert sorted(run.id for run in found) == sorted(ids)
        assert not any(run.problem for run in found)


def test_names_can_be_translated_and_runs_of_lessons_are_not_listed(store):
    assert {store.get(run_id).meta.name for run_id in RECORDINGS} == set(NAMES)
    lessons = {run_id for run_id, recording in RECORDINGS.items() if recording.is_lesson}
    assert {run.id for run in store.lessons()} == lessons
    assert not lessons & {run.id for run in store.list()}


@pytest.mark.parametrize("name", MEASURED)
def test_a_recorded_measurement_is_whole_with_every_side_of_now(name):
    report, _torch, _day = recorded(name)
    assert report.is_complete
    assert report.timed == report.cases
    assert all(is_equal(one) for case in report.timed for one in case.equalities)
    assert set(report.timed[0].sides) == set(COMPARISONS[name].sides)


@pytest.mark.parametrize("run_id", RECORDINGS)
def test_every_part_of_a_recorded_run_can_be_read(store, run_id):
    run = store.get(run_id)
    curves = run.curves()
    assert run.problem is None
    assert run.meta.recorded
    assert run.status.state == "finished"
    assert len(curves.steps) > 100
    assert run.snapshot_steps()[0] == 0
    if RECORDINGS[run_id].kept:
        assert len(run.snapshot_steps()) <= RECORDINGS[run_id].kept
    assert run.snapshot_steps()[-1] == run.status.step
    recording = RECORDINGS[run_id]
    training = recording.experiment.training.replace(snapshots=recording.snapshots)
    assert run.experiment == recording.experiment.replace(training=training.model_dump())
    assert (run.meta.name, run.meta.preset) == (recording.name, recording.preset)
    for step in run.snapshot_steps():
        snapshot = run.snapshot(step)
        assert snapshot.attention
        assert {len(maps) for maps in snapshot.attention.values()} == {len(run.probe().attended)}
        assert snapshot.masks.keys() == snapshot.attention.keys()
        for index, item in enumerate(run.probe().attended):  # no weight where its mask forbids it
            example = example_of(run.experiment, run.probe(), snapshot, index)
            for module, mask in example.masks.items():
                assert np.array_equal(mask, expected_mask(run.experiment, item, module))
                assert not (example.attention[module][:, ~mask] > 0).any()
    probe = run.probe()
    if probe.kind != "image":
        assert probe.mean is None
        return
    assert len(probe.mean) == len(probe.std) == probe.images.shape[1]
    _needs_its_data(run)
    data = data_of(run.experiment)
    assert (probe.mean, probe.std) == (data.mean.tolist(), data.std.tolist())


def _needs_its_data(run):
    if run.experiment.task.name == "mnist" and not is_here("mnist"):
        pytest.skip("This run learned the full MNIST, which is not in TFM_DATA_DIR.")


def learned_at(run):
    """Return the step from which on nearly all that is learned in the end is learned."""
    curves = run.curves()
    loss, step = curves.validation["loss"], curves.validation["step"]
    return int(step[loss <= loss[0] - 0.98 * (loss[0] - loss.min())][0])


@pytest.mark.parametrize("run_id", ["recorded-korean", "recorded-digits", "recorded-grammar"])
def test_the_runs_that_open_first_are_watched_while_they_learn(store, run_id):
    run = store.get(run_id)
    watched = [step for step in run.snapshot_steps() if 0 < step <= learned_at(run)]
    assert len(watched) >= 25


@pytest.mark.parametrize("run_id", [name for name in RECORDINGS if RECORDINGS[name].weight_sets])
def test_runs_that_are_looked_back_on_keep_their_weights(store, run_id):
    run = store.get(run_id)
    assert len(run.weight_steps()) >= RECORDINGS[run_id].weight_sets
    kept, last = run.weights(run.weight_steps()[-1]), run.folder / "checkpoints" / "last"
    model, step = checkpoints.load_model(run.experiment, last)
    assert step == run.weight_steps()[-1]
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(kept[name], value.half().numpy())


def test_heads_of_the_recorded_translator_differ(store):
    run = store.get("recorded-korean")
    snapshot = run.snapshot(run.snapshot_steps()[-1])
    scored = score(run.experiment, run.probe(), snapshot)
    shares = scored["share"]
    assert scored["module"].nunique() == 3
    assert shares.max() >= 0.6
    assert shares.max() >= 4 * shares.min()
    table = table_of_snapshot(run.experiment, run.probe(), snapshot)
    labels = {re.split("[:,]", label)[0] for label in table["short"]}
    assert len(labels) >= 4, labels


@pytest.mark.core(6)
@pytest.mark.parametrize("run_id", RECORDINGS)
def test_the_recorded_accuracy_is_that_of_the_recorded_weights(store, run_id):
    run = store.get(run_id)
    _needs_its_data(run)
    curves = run.curves()
    trainer = build(run.experiment)
    checkpoints.load(trainer, run.folder / "checkpoints" / "last")
    with torch.inference_mode():
        split = "test" if run.experiment.training.final_test else "validation"
        loss, accuracy, _ = trainer.objective.measure(trainer.model.eval(), split)
    measured = curves.test if split == "test" else curves.validation
    assert accuracy == pytest.approx(measured.last("accuracy"), abs=0.003)
    assert loss == pytest.approx(measured.last("loss"), rel=0.05)


def test_step_times_are_recorded_for_every_model_and_length():
    seconds, _torch, _day = recorded_times()
    assert set(seconds) == set(alignment.rnn_models())
    assert tuple(seconds.index) == LENGTHS
    assert (seconds > 0).all(axis=None)


@pytest.mark.core(2)
@pytest.mark.parametrize("run_id", RECORDINGS if IS_NIGHTLY else ONE_A_FAMILY)
def test_a_recorded_run_can_be_trained_further(store, run_id):
    _needs_its_data(store.get(run_id))
    steps = store.get(run_id).status.step
    fork = store.fork(run_id, steps=steps + 50)
    trainer = build(fork.experiment)
    checkpoints.load(trainer, fork.folder / "checkpoints" / "last")
    assert trainer.step == steps
    assert fork.status.can_resume
