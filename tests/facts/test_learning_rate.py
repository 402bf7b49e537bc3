"""The learning rate that is advised: the preset's, or what is usual for the optimiser."""

from tests.facts.test_training_time import changed
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.learning_rate import calmer_rate, nearest_preset, usual_rate

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
