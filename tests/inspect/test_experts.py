"""Which tokens go where over a run: the routes of its own router, without padding."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.training.test_loop import experiment
from tfm_core.inspect import experts
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import model_of
from tfm_core.probe.capture import capture
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

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
    for module in experts.layers(snapshot):
        for item, gates in zip(run.probe().attended, snapshot.routing[module], strict=True):
            found = experts.routed(run.experiment, item, gates, module)
            with capture(model, only={"gates"}) as cache, torch.no_grad():
                model(*inputs_of(run, item))
            expected = cache[f"{module}.gates"][0]
            assert found.gates.shape == (len(found.tokens), N_EXPERTS)
            expected = expected[: len(found.tokens)]
            np.testing.assert_allclose(found.gates, expected.numpy(), atol=2e-3)
    steps = run.snapshot_steps()
    names = experts.layers(run.snapshot(steps[-1]))
    assert [name.partition(".")[0] for name in names] == ["encoder", "decoder"]
    n_sources = sum(len(item["src"]) for item in run.probe().attended)
    loads = experts.loads(run, next(iter(names)), steps)
    assert [load.step for load in loads] == steps
    for load in loads:
        assert load.n_tokens == n_sources
        assert load.shares.sum() == pytest.approx(1)
        assert load.shares.max() <= 1 / 2  # each token passes two
    load = experts.loads(run, "encoder.layers.0.feed_forward", run.snapshot_steps()[:1])[0]
    shares = np.array([0.5, 0.0, 0.5, 0.0, 0.0])
    assert dataclasses.replace(load, shares=shares).dead == (2, 4, 5)
    item = run.probe().attended[0]
    with pytest.raises(ValueError, match="fewer tokens"):
        experts.routed(run.experiment, item, np.zeros((1, 5)), "encoder.layers.0.feed_forward")
