"""Which tokens go where over a run: the routes of its own router, without padding."""

import numpy as np
import pytest
import torch

from tests.training.test_loop import experiment
from tfm_core.inspect import experts
from tfm_core.inspect.attention.trained import inputs_of, model_of
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
            tokens, shares = experts.routed(run.experiment, item, gates, module)
            with capture(model, only={"gates"}) as cache, torch.no_grad():
                model(*inputs_of(run, item))
            expected = cache[f"{module}.gates"][0]
            assert shares.shape == (len(tokens), N_EXPERTS)
            np.testing.assert_allclose(shares, expected[: len(tokens)].numpy(), atol=2e-3)
    steps = run.snapshot_steps()
    names = experts.layers(run.snapshot(steps[-1]))
    assert [name.partition(".")[0] for name in names] == ["encoder", "decoder"]
    n_sources = sum(len(item["src"]) for item in run.probe().attended)
    loads, n_tokens = experts.loads(run, next(iter(names)), steps)
    assert loads.index.tolist() == steps
    assert loads.columns.tolist() == list(range(1, N_EXPERTS + 1))
    assert n_tokens == n_sources
    np.testing.assert_allclose(loads.sum(axis=1), 1)
    assert (loads <= 1 / 2).all(axis=None)  # each token passes two
    item = run.probe().attended[0]
    with pytest.raises(ValueError, match="fewer tokens"):
        experts.routed(run.experiment, item, np.zeros((1, 5)), "encoder.layers.0.feed_forward")
