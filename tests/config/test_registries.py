"""Names in configs and the classes behind them are the same sets."""

from typing import get_args

import pytest

from tfm_core.config import choices
from tfm_core.layers.feed_forward import ACTIVATION_FUNCTIONS
from tfm_core.layers.norms import NORM_LAYERS
from tfm_core.layers.patches import STEM_LAYERS
from tfm_core.layers.recurrent import SCORES
from tfm_core.models.recurrent import SEQUENCES, STEPS
from tfm_core.training.optimisation import SCHEDULE_FUNCTIONS


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (choices.LanguageName, choices.LANGUAGES),
        (choices.NormName, choices.NORMS),
        (choices.ActivationName, choices.ACTIVATIONS),
        (choices.PoolingName, choices.POOLINGS),
        (choices.StemName, choices.STEMS),
        (choices.CellName, choices.CELLS),
        (choices.RecurrentAttentionName, choices.RECURRENT_ATTENTIONS),
        (choices.OptimizerName, choices.OPTIMIZERS),
        (choices.ScheduleName, choices.SCHEDULES),
        (choices.PrecisionName, choices.PRECISIONS),
    ],
)
def test_every_name_has_a_label_and_help(names, words):
    assert set(get_args(names)) == set(words)
    assert all(choice.label and choice.help.endswith(".") for choice in words.values())


def test_every_name_has_a_class():
    assert set(NORM_LAYERS) == set(choices.NORMS)
    assert set(ACTIVATION_FUNCTIONS) == set(choices.ACTIVATIONS)
    assert set(STEM_LAYERS) == set(choices.STEMS)
    assert set(SCORES) == set(choices.RECURRENT_ATTENTIONS)
    assert set(SEQUENCES) == set(STEPS) == set(choices.CELLS)
    assert set(SCHEDULE_FUNCTIONS) == set(choices.SCHEDULES)
