"""Activations and experts of a run: their own numbers, and where each token goes."""

import math

import numpy as np
import pytest
import torch

from tests.training.test_loop import experiment
from tfm_core.inspect import feed_forward
from tfm_core.inspect.attention.trained import inputs_of, model_of
from tfm_core.probe.capture import capture
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RECORDED, RunStore


def test_relu_and_gelu_are_what_their_papers_say():
    u, value, slope = feed_forward.curve("relu").to_numpy()[:, :3].T.astype(np.float32)
    np.testing.assert_allclose(value, np.maximum(u, 0))
    assert set(slope) == {0.0, 1.0}
    u, value, slope = feed_forward.curve("gelu").to_numpy()[:, :3].T.astype(np.float32)
    normal = np.array([0.5 * (1 + math.erf(one / math.sqrt(2))) for one in u])
    np.testing.assert_allclose(value, u * normal, atol=1e-6)
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(slope, normal + u * density, atol=1e-6)


@pytest.mark.parametrize("run_id", ["recorded-digits", "recorded-korean"])
def test_the_numbers_of_a_run_are_those_that_its_layers_bend(run_id, tmp_path):
    run = RunStore(tmp_path, recorded=RECORDED).get(run_id)
    found, shares = feed_forward.given(run)
    model, _step = model_of(run)
    name = run.experiment.model.activation
    hidden = dict.fromkeys(found["layer"], 0)
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
    for one in found.itertuples():
        assert one.n == hidden[one.layer]
        assert shares[one.layer].sum() == pytest.approx(1)
        assert one.below == pytest.approx(zeros[one.layer] / one.n, abs=1e-3)
        if name == "relu":
            assert one.slope == pytest.approx(1 - one.below, abs=1e-3)


N_EXPERTS = 5


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    chosen = experiment("encoder-decoder", "copy", model={"n_experts": N_EXPERTS})
    made = RunStore(tmp_path_factory.mktemp("runs")).create(chosen, name="Experts")
    execute(made)
    return made


def test_routes_loads_and_dead_experts_are_those_of_the_router(run):
    last = run.snapshot_steps()[-1]
    snapshot, (model, step) = run.snapshot(last), model_of(run)
    assert step == last
    for module in feed_forward.layers(snapshot):
        for item, gates in zip(run.probe().attended, snapshot.routing[module], strict=True):
            tokens, shares = feed_forward.routed(run.experiment, item, gates, module)
            with capture(model, only={"gates"}) as cache, torch.no_grad():
                model(*inputs_of(run, item))
            expected = cache[f"{module}.gates"][0]
            assert shares.shape == (len(tokens), N_EXPERTS)
            np.testing.assert_allclose(shares, expected[: len(tokens)].numpy(), atol=2e-3)
    steps = run.snapshot_steps()
    names = feed_forward.layers(run.snapshot(steps[-1]))
    assert [name.partition(".")[0] for name in names] == ["encoder", "decoder"]
    n_sources = sum(len(item["src"]) for item in run.probe().attended)
    loads, n_tokens = feed_forward.loads(run, next(iter(names)), steps)
    assert loads["step"].tolist() == steps
    shares = loads.drop(columns="step")
    assert shares.columns.tolist() == [str(n) for n in range(1, N_EXPERTS + 1)]
    assert n_tokens == n_sources
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares <= 1 / 2).all(axis=None)  # each token passes two
    item = run.probe().attended[0]
    with pytest.raises(ValueError, match="more tokens than the snapshot"):
        feed_forward.routed(run.experiment, item, np.zeros((1, 5)), "encoder.layers.0.feed_forward")
