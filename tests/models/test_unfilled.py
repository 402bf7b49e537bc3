"""Models of names and shapes alone."""

import subprocess
import sys

import pytest

from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.models.build import build_model, init_on_meta

COMPILER = """
import sys
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
for name in ("gpt2-small", "transformer-base", "vit-ti"):
    parameter_table(ARCHITECTURES[name].model, ARCHITECTURES[name].shape)
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("name", ["translate", "vit-text", "captions", "gpt-grammar", "dates"])
def test_an_unfilled_model_has_the_names_and_shapes_of_a_real_one(name):
    experiment = PRESETS[name].experiment
    shape = data_shape(experiment)
    real = build_model(experiment.model, shape).state_dict()
    with init_on_meta():
        model = build_model(experiment.model, shape)
    found = model.state_dict()
    assert {key: value.shape for key, value in found.items()} == {
        key: value.shape for key, value in real.items()
    }
    assert all(weight.is_meta for weight in model.parameters() if weight.ndim == 2)


def test_laying_out_a_model_does_not_load_the_compiler():
    done = subprocess.run(
        [sys.executable, "-c", COMPILER], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]
