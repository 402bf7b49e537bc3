"""Activations: their curves are the functions', and a run's own numbers are those of its layers."""

import math

import numpy as np
import pytest
import torch

from tfm_core.inspect import activations
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import model_of
from tfm_core.probe.capture import capture
from tfm_core.runs.store import RECORDED, RunStore


def test_relu_and_gelu_are_what_their_papers_say():
    relu, gelu = activations.curve("relu"), activations.curve("gelu")
    np.testing.assert_allclose(relu.value, np.maximum(relu.u, 0))
    normal = np.array([0.5 * (1 + math.erf(u / math.sqrt(2))) for u in gelu.u])
    np.testing.assert_allclose(gelu.value, gelu.u * normal, atol=1e-6)
    density = np.exp(-(gelu.u**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(gelu.slope, normal + gelu.u * density, atol=1e-6)
    assert set(relu.slope) == {0.0, 1.0}


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
