"""The model with the weights of one step."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.inspect.constructed import small, text_experiment  # noqa: E402
from tfm_core.inspect.attention.trained import (  # noqa: E402
    model_of,
    model_of_step,
)
from tfm_core.runs.run import Run  # noqa: E402
from tfm_core.runs.store import RECORDED  # noqa: E402
from tfm_core.sentences import StudentError  # noqa: E402


def test_the_model_of_a_step_has_its_weights_and_none_means_the_last(tmp_path):
    run, _trainer = trained(tmp_path, small(text_experiment("encoder-decoder")))
    last, step = model_of(run)
    assert model_of_step(run) == (last, step)
    assert model_of_step(run, step) == (last, step)
    korean = Run(RECORDED / "recorded-korean")
    early, at = model_of_step(korean, 63)
    assert at == 63
    for name, value in korean.weights(63).items():
        assert np.array_equal(early.state_dict()[name].numpy(), value), name
    with pytest.raises(StudentError, match="64"):
        model_of_step(korean, 64)
