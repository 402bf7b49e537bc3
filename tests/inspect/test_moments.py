"""Moments of a training, and why validation can look better than training."""

import json
import math

import numpy as np
import pytest

from tests.inspect.attention.test_alignment import ITEMS, even, never, perfect, snapshot_of
from tests.inspect.constructed import text_experiment, vit_experiment
from tfm_core.choices.config import Experiment
from tfm_core.inspect.moments import better_validation, moments
from tfm_core.probe.types import Snapshot
from tfm_core.runs.curves import Curves
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.store import RECORDED, RunStore


def texts():
    return {
        "kind": "text",
        "items": [
            {**item, "src_text": " ".join(item["src"]), "tgt_text": "".join(item["tgt"])}
            for item in ITEMS
        ],
    }


def run_of(store, experiment, probe, snapshots, events=()):
    run = store.create(experiment)
    write_probe(run.folder, probe)
    for snapshot in snapshots:
        write_snapshot(run.folder, snapshot)
    text = "".join(json.dumps(event) + "\n" for event in events)
    (run.folder / "events.jsonl").write_text(text)
    return run


def told(run):
    return {step: str(text) for step, text in moments(run, run.snapshot_steps()).items()}


def attending(store, *looks):
    """Return what is told of a model whose heads look like this, snapshot by snapshot."""
    experiment = text_experiment()
    snapshots = [snapshot_of(experiment, 100 * n, look) for n, look in enumerate(looks)]
    return told(run_of(store, experiment, texts(), snapshots))


def started(floor=0.0):
    return {"event": "started", "start_loss": 4.0, "floor": floor, "chance": 0.02}


def measured(step, loss, accuracy, whole=None):
    values = {"split": "validation", "loss": loss, "accuracy": accuracy}
    return {"event": "measured", "step": step, **values, "sequence_accuracy": whole}


def curved(store, *events, steps=(0, 100, 200)):
    """Return what is told of a run whose snapshots are empty, by its curves alone."""
    snapshots = [Snapshot(step) for step in steps]
    return told(run_of(store, text_experiment(), texts(), snapshots, events))


def test_heads_that_begin_to_align_are_named_counted_and_told_once(store):
    found = attending(store, [even, even, even], [even, perfect, even])
    assert "layer 1, head 2 now aligns: 100% of its attention" in found[100]
    assert found[0] == "The weights are random."
    found = attending(store, [even, even, even], [perfect, never, perfect])
    assert "layer 1: 2 of 3 heads now align, with 100% to 100% of their attention" in found[100]
    """Three layers begin to align at once; one is reported then, the others not 100 steps later."""
    found = attending(store, [even] * 3, [perfect] * 3, [perfect] * 3)
    assert set(found) == {0, 100}


def test_heads_that_part_are_told_behind_that_one_aligns(store):
    looks = [perfect, never, even]
    experiment = text_experiment()
    near = [snapshot_of(experiment, step, looks) for step in (100, 101, 102, 103, 104, 105)]
    first = snapshot_of(experiment, 0, [even, even, even])
    found = told(run_of(store, experiment, texts(), [first, *near]))
    assert any("heads now differ. Head 1 puts 100%" in said for said in found.values())
    assert any("head 2 0%" in said for said in found.values())


@pytest.mark.parametrize("look", [even, never])
def test_heads_that_do_not_align_are_not_told(store, look):
    assert set(attending(store, [even] * 3, [look] * 3)) == {0}


def test_the_shares_of_right_answers_are_told_with_the_step_since_which_they_last(store):
    found = curved(
        store,
        started(),
        measured(0, 4.0, 0.02),
        measured(100, 1.0, 0.569, 0.1),
        measured(200, 0.1, 0.969, 0.9),
    )
    assert "accuracy is 56.9%" in found[100]
    assert "accuracy is 96.9%" in found[200] or "sequence accuracy is 90.0%" in found[200]
    found = curved(
        store,
        started(),
        measured(0, 4.0, 0.02, 0.0),
        measured(100, 0.1, 1.0, 1.0),
        measured(200, 0.1, 1.0, 1.0),
        steps=(0, 241),
    )
    assert "accuracy is 100%" in found[241]
    assert "since step 100" in found[241]
    found = curved(
        store,
        started(),
        measured(50, 0.1, 1.0),
        measured(100, 1.0, 0.7),
        measured(150, 0.1, 1.0),
        steps=(0, 200),
    )
    assert "since step 150" in found[200]


def test_guessing_is_no_learning_and_better_than_chance_or_a_floor_is_told(store):
    found = curved(store, started(), measured(100, 3.9, 0.13), measured(200, 3.8, 0.14))
    assert set(found) == {0}
    found = curved(store, started(), measured(100, 3.0, 0.3))
    assert "validation accuracy is 30.0% at step 100, chance is 2.0%" in found[100]
    found = curved(store, started(floor=2.0), measured(100, 2.5, 0.3))
    assert found[100].startswith(
        "The model has learned 75.0% of what can be learned: validation loss is 2.50 at step 100"
    )


def steps_of(*losses):
    return [{"event": "step", "step": n, "loss": loss} for n, loss in enumerate(losses, 1)]


def test_a_loss_that_jumps_is_told_at_its_step_and_noise_is_not(store):
    losses = [4.0, 3.0, 2.0, 1.0, *[0.5] * 120, 6.25, *[0.5] * 40]
    found = curved(store, started(), *steps_of(*losses))
    assert found[200] == "The loss jumped from 0.50 to 6.25 at step 125."
    losses = [4.0 - 0.015 * n + 0.4 * (n % 3) for n in range(200)]
    assert set(curved(store, started(), *steps_of(*losses))) == {0}


def pictures():
    images = np.zeros((3, 1, 28, 28), np.uint8)
    images[:, :, 7:21, 7:14] = 255  # 2 of the 16 patches
    return {"kind": "image", "items": [{"label": n} for n in (4, 0, 9)], "images": images}


def of_digits(step, on, right):
    """Return a snapshot in which head 2 of layer 1 puts a share on the ink, and some are right."""
    maps = np.full((3, 3, 16, 16), 1 / 16, np.float16)
    ink = np.zeros(16, bool)
    ink[[5, 9]] = True
    maps[:, 1] = np.where(ink, on / 2, (1 - on) / 14)
    probabilities = np.full((3, 10), 0.1, np.float16)
    for row, label in [(0, 4), (1, 0), (2, 9)][:right]:
        probabilities[row, label] = 0.8
    names = ("encoder.layers.0.self_attention", "encoder.layers.1.self_attention")
    even_maps = np.full((3, 3, 16, 16), 1 / 16, np.float16)
    everywhere = dict.fromkeys(names, np.ones((1, 1, 1, 1), bool))
    attention = {names[0]: maps, names[1]: even_maps}
    return Snapshot(step, attention, probabilities, masks=everywhere)


def test_a_head_that_follows_the_strokes_is_told(store):
    snapshots = [of_digits(0, 2 / 16, 0), of_digits(50, 0.6, 0)]
    found = told(run_of(store, vit_experiment(), pictures(), snapshots))
    assert "head 2 now follows the strokes: 59.9%" in found[50] or "60.0%" in found[50]
    assert "on the 12.5% of patches with ink" in found[50]


def test_answers_are_counted_from_the_first_one(store):
    snapshots = [of_digits(step, 2 / 16, n) for step, n in ((0, 0), (50, 1), (90, 1), (300, 3))]
    found = told(run_of(store, vit_experiment(), pictures(), snapshots))
    assert found == {
        0: "The weights are random.",
        50: "The model gets its first of 3 examples right: “4”.",
        300: "All 3 examples are right.",
    }


@pytest.mark.parametrize("run_id", sorted(one.name for one in RECORDED.glob("recorded-*")))
def test_every_recorded_run_has_moments_of_its_snapshots(store, run_id):
    run = RunStore(store.root).get(run_id)
    found = moments(run, run.snapshot_steps())
    assert set(found) <= set(run.snapshot_steps())
    assert len(set(found.values())) == len(found) >= 2


WINDOW = 7
DROPOUT, PICTURES, SMOOTHING, LAG = "Dropout", "Augmentation", "smoothing", "averages the last 7"
NOISE = "25% of the training labels"
CAUSES = {DROPOUT, PICTURES, NOISE, SMOOTHING, LAG}


def curves_of(losses, validation, *, accuracy=0.5, turns=()):
    """Return curves with a loss a step, and validations: step -> loss or (loss, accuracy)."""
    curves = Curves()
    events = [
        {"event": "step", "step": n, "loss": float(loss), "accuracy": accuracy}
        for n, loss in enumerate(losses, 1)
    ]
    for step, told in validation.items():
        loss, right = told if isinstance(told, tuple) else (told, 0.1)
        events.append(
            {
                "event": "measured",
                "step": step,
                "split": "validation",
                "loss": loss,
                "accuracy": right,
            }
        )
    events += [{"event": "turned", "step": n, "setting": name, "value": v} for n, name, v in turns]
    curves.extend(events)
    return curves


def plain(experiment: Experiment, *, dropout=0.0, smoothing=0.0, **task: float) -> Experiment:
    return experiment.replace(
        model=experiment.model.replace(dropout=dropout).model_dump(),
        task=experiment.task.replace(**task).model_dump(),
        training=experiment.training.replace(label_smoothing=smoothing).model_dump(),
    )


LEVEL = [2.0] * 60
BETTER = dict.fromkeys((11, 23, 37, 53), 1.5)
STILL = {"shift": 0.0, "rotation": 0.0, "scale": 0.0}


def said(experiment, curves):
    found = better_validation(experiment, curves, WINDOW)
    assert found is not None
    return {cause for cause in CAUSES if cause in found[2]}


@pytest.mark.parametrize(
    ("experiment", "cause"),
    [
        (plain(text_experiment(), dropout=0.3), DROPOUT),
        (plain(vit_experiment(), **STILL | {"shift": 1.5}), PICTURES),
        (plain(vit_experiment(), **STILL | {"rotation": 5.0}), PICTURES),
        (plain(vit_experiment(), **STILL | {"scale": 0.1}), PICTURES),
        (plain(vit_experiment(), **STILL | {"label_noise": 0.25}), NOISE),
        (plain(text_experiment(), smoothing=0.1), SMOOTHING),
    ],
)
def test_a_cause_is_named_exactly_where_the_run_has_it(experiment, cause):
    assert said(experiment, curves_of(LEVEL, BETTER)) == {cause}


def test_causes_and_stretches_of_a_better_validation_are_told():
    pictures = plain(vit_experiment(), dropout=0.1, smoothing=0.1, shift=1.0, label_noise=0.25)
    falling = [3.0 - 0.04 * n for n in range(60)]
    below = {step: 0.9 * falling[step - 1] for step in (11, 23, 37, 53)}
    assert said(pictures, curves_of(falling, below)) == CAUSES
    experiment = plain(text_experiment())
    falling = [3.0 - 0.04 * n for n in range(60)]
    now = {step: falling[step - 1] for step in (11, 23, 37, 53)}
    assert said(experiment, curves_of(falling, now)) == {LAG}
    found = better_validation(experiment, curves_of(LEVEL, BETTER), WINDOW)
    assert found is not None
    assert not said(experiment, curves_of(LEVEL, BETTER))
    assert "chance" in found[2]
    loop = Experiment.parse({"model": {"family": "foreign"}, "task": {"kind": "foreign"}})
    found = better_validation(loop, curves_of(LEVEL, BETTER), WINDOW)
    assert "not recorded" in found[2]
    assert "chance" not in found[2]
    assert "is on in training" not in found[2]
    experiment = plain(text_experiment(), dropout=0.2)
    validation = {7: 1.0, 11: 2.5, 19: 1.5, 29: 1.5, 37: 1.5, 53: 2.5}
    found = better_validation(experiment, curves_of(LEVEL, validation), WINDOW)
    assert found is not None
    assert found[:2] == (19, 37)
    two = {11: 1.5, 23: 1.5, 37: 2.5, 53: 1.5}
    assert better_validation(experiment, curves_of(LEVEL, two), WINDOW) is None
    hardly = dict.fromkeys((11, 23, 37, 53), 1.98)
    assert better_validation(experiment, curves_of(LEVEL, hardly), WINDOW) is None
    assert better_validation(experiment, Curves(), WINDOW) is None
    nothing = curves_of([math.nan] * 60, BETTER, accuracy=math.nan)
    assert better_validation(experiment, nothing, WINDOW) is None
    assert better_validation(experiment, curves_of(LEVEL, {0: 1.0, 1: 1.0}), WINDOW) is None


def test_settings_count_as_they_were_and_smoothing_is_none_of_accuracy():
    experiment = plain(text_experiment(), dropout=0.2, smoothing=0.1)
    above = dict.fromkeys((11, 23, 37), (2.5, 0.7))
    assert said(experiment, curves_of(LEVEL, above)) == {DROPOUT}
    as_high = dict.fromkeys((11, 23, 37), (2.5, 0.5))
    assert better_validation(experiment, curves_of(LEVEL, as_high), WINDOW) is None
    without = plain(text_experiment())
    later = curves_of(LEVEL, BETTER, turns=[(43, "model.dropout", 0.5)])
    assert said(without, later) == {DROPOUT}
    before = curves_of(LEVEL, BETTER, turns=[(5, "model.dropout", 0.0)])
    assert not said(plain(text_experiment(), dropout=0.5), before)
