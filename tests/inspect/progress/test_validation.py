"""Where validation looks better than training, it is said why: with and without each cause."""

import math

import pytest

from tests.inspect.constructed import text_experiment, vit_experiment
from tfm_core.choices.config import Experiment
from tfm_core.inspect.moments import better_validation
from tfm_core.runs.curves import Curves

WINDOW = 7
DROPOUT, PICTURES, SMOOTHING, LAG = "Dropout", "Augmentation", "smoothing", "mean of the last 7"
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
