"""What is proposed against a symptom: a few other settings, from a checkpoint that is well."""

import pytest

from tfm_core.config import Experiment
from tfm_core.inspect.symptoms.cures import cures
from tfm_core.presets import PRESETS

TRANSLATE = PRESETS["translate"].experiment
KEPT = {"best": 300, "last": 700}


def _middle(experiment: Experiment) -> tuple[int, dict[str, int]]:
    """Return a step in the middle of a run, and what it has kept."""
    steps = experiment.training.steps
    return steps // 2, {"best": 3 * steps // 10, "last": 7 * steps // 10}


def sick(model: dict | None = None, task: dict | None = None, **training: object) -> Experiment:
    return TRANSLATE.replace(
        model=TRANSLATE.model.replace(**(model or {})).model_dump(),
        task=TRANSLATE.task.replace(**(task or {})).model_dump(),
        training=TRANSLATE.training.replace(**training).model_dump(),
    )


def test_each_sickness_has_its_cure() -> None:
    cure, *_others = cures("diverged", sick(learning_rate=10.0), 400, KEPT)
    assert (cure.begins, cure.step) == ("best", 300)
    assert cure.experiment == TRANSLATE
    assert cure.label == "Continue from step 300: learning rate 0.006"
    (cure,) = cures("slow", sick(learning_rate=1e-5), 150, KEPT)
    assert (cure.begins, cure.step) == ("last", 700)
    assert cure.experiment.training.learning_rate == 0.006
    assert cure.experiment.training.steps == 700 + TRANSLATE.training.steps
    cure, *_others = cures("exploding", sick(clip_norm=0.0), 400, KEPT)
    assert cure.experiment.training.clip_norm == 1.0
    cure, *_others = cures("dead-heads", sick(optimizer="adam", weight_decay=0.1), 300, KEPT)
    assert (cure.begins, cure.experiment.training.weight_decay) == ("beginning", 0.0)
    more, dropout, early = cures("overfits", sick(task={"n_train": 60}), 300, KEPT)
    assert (more.begins, more.experiment.task.n_train) == ("beginning", 600)
    assert (dropout.begins, dropout.step, dropout.experiment.model.dropout) == ("best", 300, 0.2)
    assert early.experiment.training.patience == 3


@pytest.mark.parametrize("kept", [KEPT, {"best": None, "last": None}])
def test_weights_that_are_spoilt_are_not_taken_along(kept) -> None:
    cure, *_others = cures("diverged", sick(learning_rate=10.0), 2, kept)
    assert (cure.begins, cure.step) == ("beginning", 0)
    assert cure.label == "Start again: learning rate 0.006"


@pytest.mark.parametrize(
    "kind",
    ["diverged", "at-chance", "slow", "stuck", "exploding", "vanishing", "dead-heads", "overfits"],
)
def test_every_cure_of_every_preset_changes_something_and_keeps_the_weights_shape(kind) -> None:
    found = [
        (preset.experiment, cure)
        for preset in PRESETS.values()
        for cure in cures(kind, preset.experiment, *_middle(preset.experiment))
    ]
    for experiment, cure in found:
        assert cure.experiment != experiment
        if cure.begins != "beginning":
            kept = {"dropout": experiment.model.dropout}
            assert cure.experiment.model.replace(**kept) == experiment.model
            assert cure.experiment.training.steps > cure.step
