"""Activations: their curves are the functions', and a run's own numbers are those of its layers."""

import math

import numpy as np
import pytest
import torch

from tfm_core.inspect import activations
from tfm_core.inspect.attention.trained import inputs_of, model_of
from tfm_core.probe.capture import capture
from tfm_core.runs.store import RECORDED, RunStore


def test_relu_and_gelu_are_what_their_papers_say():
    u, value, slope = activations.curve("relu")
    np.testing.assert_allclose(value, np.maximum(u, 0))
    assert set(slope) == {0.0, 1.0}
    u, value, slope = activations.curve("gelu")
    normal = np.array([0.5 * (1 + math.erf(one / math.sqrt(2))) for one in u])
    np.testing.assert_allclose(value, u * normal, atol=1e-6)
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(slope, normal + u * density, atol=1e-6)


@pytest.mark.parametrize("run_id", ["recorded-digits", "recorded-korean"])
def test_the_numbers_of_a_run_are_those_that_its_layers_bend(run_id, tmp_path):
    run = RunStore(tmp_path, recorded=RECORDED).get(run_id)
    found = activations.given(run)
    model, _step = model_of(run)
    name = run.experiment.model.activation
    hidden = {one.layer: 0 for one in found}
    zeros = dict(hidden)
    probe = run.probe()
    for index, item in enumerate(probe.items):
        picture = None if probe.images is None else probe.images[index]
        with capture(model, only={"hidden"}) as cache, torch.no_grad():
            model(*inputs_of(run, item, picture))
        for layer in hidden:
            bent = cache[f"{layer}.feed_forward.hidden"]
            hidden[layer] += bent.numel()
            zeros[layer] += int((bent <= 0).sum())
    for one in found:
        assert one.n == hidden[one.layer]
        assert one.shares.sum() == pytest.approx(1)
        assert one.below == pytest.approx(zeros[one.layer] / one.n, abs=1e-3)
        if name == "relu":
            assert one.slope == pytest.approx(1 - one.below, abs=1e-3)
