"""How long a training takes, and the learning rate that suits its width."""

from itertools import pairwise

import pytest

from tfm_core.choices.config import FAMILIES, Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.task import tasks_for
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.learning_rate import calmer_rate, nearest_preset, usual_rate
from tfm_core.facts.training_time import seconds


def changed(experiment: Experiment, section: str, **values) -> Experiment:
    part = getattr(experiment, section).model_dump() | values
    return experiment.replace(**{section: part})


def test_everything_has_a_time_and_halves_precision_and_checkpointing_cost():
    for name, preset in PRESETS.items():
        assert seconds(preset.experiment) == pytest.approx(preset.seconds), name
    for family, task in ((own, task) for own in FAMILIES for task in tasks_for(own)):
        values = default_sections(family, task)
        if "patch_size" in values["model"]:
            values["model"]["patch_size"] = 1  # divides all pictures
        assert seconds(Experiment.parse(values)) > 0
    whole = PRESETS["vit-digits"].experiment
    n = whole.training.steps // 2
    assert seconds(whole, n) == pytest.approx(seconds(whole) / 2, rel=0.1)
    halved = changed(whole, "training", batch_warmup=0.5)
    assert 0.4 * seconds(whole) < 2 * seconds(halved, n) < 0.8 * seconds(whole)
    assert seconds(halved) - seconds(halved, n) == pytest.approx(seconds(whole) / 2, rel=0.1)
    chosen = PRESETS["vit-digits"].experiment
    for name in ("bf16", "fp16"):
        assert seconds(changed(chosen, "training", precision=name)) > 1.2 * seconds(chosen)
    again = seconds(changed(chosen, "training", checkpointing=True)) / seconds(chosen)
    assert 1.1 < again < 4 / 3


@pytest.mark.parametrize("name", ["translate", "gpt-text", "vit-digits", "captions"])
def test_deeper_wider_and_longer_take_more(name):
    chosen = PRESETS[name].experiment
    depths = [field for field in type(chosen.model).model_fields if field.endswith("layers")]
    for field in depths:
        times = [seconds(changed(chosen, "model", **{field: n})) for n in (1, 2, 3, 4, 7)]
        assert all(less < more for less, more in pairwise(times))
    wider = changed(chosen, "model", d_model=2 * chosen.model.d_model)
    assert seconds(wider) > seconds(chosen)
    larger = changed(chosen, "training", batch_size=3 * chosen.training.batch_size)
    assert seconds(larger) > seconds(chosen)
    shorter = changed(chosen, "training", steps=chosen.training.steps // 2)
    assert seconds(shorter) == pytest.approx(seconds(chosen) / 2, rel=0.1)  # a validation is first


COPY = PRESETS["copy"].experiment


def test_the_rate_to_try_is_that_of_the_nearest_preset_of_its_optimiser():
    for name, preset in PRESETS.items():
        chosen = preset.experiment
        wider = changed(chosen, "model", d_model=2 * chosen.model.d_model)
        assert nearest_preset(chosen).name == nearest_preset(wider).name == name
        assert usual_rate(chosen) == chosen.training.learning_rate
    assert calmer_rate(changed(COPY, "training", learning_rate=10.0)) == 0.004
    assert calmer_rate(changed(COPY, "training", learning_rate=0.005)) == 0.0005
    assert calmer_rate(changed(COPY, "training", optimizer="sgd", learning_rate=10.0)) == 0.1
    digits = PRESETS["vit-digits"].experiment
    assert digits.training.optimizer == "muon"
    for optimizer in ("adam", "adamw"):
        assert usual_rate(changed(digits, "training", optimizer=optimizer)) == 0.004
    assert usual_rate(changed(digits, "training", optimizer="sgd")) == 0.1
    assert usual_rate(changed(COPY, "training", optimizer="muon")) == COPY.training.learning_rate
