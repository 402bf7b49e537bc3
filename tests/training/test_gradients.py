"""The gradient of each layer, as training tells of it at a few steps."""

import math

import pytest
import torch

from tests.training.test_loop import EXPERIMENTS, IDS, experiment
from tfm_core.training.events import Measured, Step, to_record
from tfm_core.training.loop import build, train
from tfm_core.training.optimisation import gradient_norms


@pytest.mark.parametrize("limit", [None, 0.01, 1000.0])
def test_the_parts_make_up_the_whole_gradient_as_it_was_before_clipping(limit):
    model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Linear(3, 2))
    model(torch.ones(7, 5)).pow(2).sum().backward()
    whole = float(torch.nn.utils.clip_grad_norm_(model.parameters(), limit or math.inf))
    norms = gradient_norms(model, whole, limit)
    assert list(norms) == ["0", "1"]
    assert math.hypot(*norms.values()) == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=IDS)
def test_a_training_tells_them_at_its_first_step_and_where_it_is_measured(chosen):
    events = list(train(build(chosen)))
    measured = {e.step for e in events if isinstance(e, Measured) and e.split == "validation"}
    for event in events:
        if isinstance(event, Step):
            assert bool(event.gradients) == (event.step in measured | {1})
            assert ("gradients" in to_record(event)) == bool(event.gradients)
            if event.gradients:
                whole = math.hypot(*event.gradients.values())
                assert whole == pytest.approx(event.grad_norm, rel=1e-3)


def test_they_change_nothing_about_the_training():
    """Reading them draws nothing at random and leaves the gradient as it is."""
    often = list(train(build(experiment(training={"validate_every": 1}))))
    seldom = list(train(build(experiment(training={"validate_every": 6}))))
    losses = [[e.loss for e in events if isinstance(e, Step)] for events in (often, seldom)]
    assert losses[0] == losses[1]
