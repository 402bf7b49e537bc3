"""How many examples each step learns from, and how often they have all been read."""

import numpy as np
import pytest

from tests.inspect.compare.test_differences import changed
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.batches import Batches

pytestmark = pytest.mark.quick


def test_the_first_steps_learn_from_half_a_batch_of_what_there_is() -> None:
    batches = Batches.of_experiment(
        changed(training__steps=10, training__batch_size=32, training__batch_warmup=0.4)
    )
    assert [batches.size_of(step) for step in range(1, 11)] == [16] * 4 + [32] * 6
    assert [batches.examples(steps) for steps in (0, 3, 4, 10)] == [0, 48, 64, 256]
    assert [batches.whole(steps) for steps in (0, 3, 4, 10)] == [0, 1.5, 2, 8]
    assert Batches.of_experiment(changed(task__n_train=8)).size == 8
    assert Batches.of_experiment(PRESETS["vit-digits"].experiment).size == 128
    one = Batches.of_experiment(changed(training__batch_size=1, training__batch_warmup=0.5))
    assert (one.size, one.n_halved) == (1, 0)
    training = changed(training__steps=20, training__batch_warmup=0.7).training
    for steps in (21, 30, 1000):
        assert training.further(steps).n_halved == training.n_halved == 14
        assert training.further(steps, stays_low=True).n_halved == 14


@pytest.mark.parametrize(("size", "n_halved"), [(32, 4), (7, 6), (1, 0), (8, 0)])
def test_examples_are_the_sum_of_what_each_step_reads(size: int, n_halved: int) -> None:
    batches = Batches(size, n_halved)
    read = np.cumsum([batches.size_of(step) for step in range(1, 13)])
    assert [batches.examples(steps) for steps in range(1, 13)] == read.tolist()
    np.testing.assert_array_equal(batches.examples(np.arange(1.0, 13.0)), read)


@pytest.mark.parametrize(
    ("share", "steps", "n"), [(0.5, 9, 4), (0.3, 11, 4), (1, 10, 10), (0, 9, 0)]
)
def test_half_batches_come_in_pairs(share: float, steps: int, n: int) -> None:
    found = changed(training__steps=steps, training__batch_warmup=share)
    assert found.training.n_halved == n
