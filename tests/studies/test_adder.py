"""The carry of the recorded adders: of one that learns it, and of one that cannot see it."""

import numpy as np
import pandas as pd
import pytest

from tfm_core.recorded.build import place_of
from tfm_core.runs.run import Run
from tfm_core.studies import adder
from tfm_core.studies.adder import ADDER, learned, sums_of


@pytest.fixture(scope="module")
def runs():
    return {arm.name: Run(place_of(f"recorded-adder-{arm.name}")) for arm in ADDER.arms}


def test_without_a_carry_no_more_is_right_and_steps_are_shares(runs):
    run = runs["blind"]
    known = list(ADDER.levels(run.experiment).values())
    has, last = adder.read_sums(run)[1][3].mean(), adder.history(run).iloc[-1]
    assert has * last["carried"] + (1 - has) * last["others"] < known[1] + 0.05
    assert adder.set_by_hand(run)[0] < 0.2  # there is no carry to set
    looks, _arrives, _explained, neurons, _answer = adder.steps_of(runs["adder"])
    assert looks.sum(1) == pytest.approx(1.0, abs=1e-5)
    assert looks[:, -1].max() < 1e-6  # the window ends at the column before
    assert neurons.shape == (ADDER.base.model.d_ff, len(adder.TOTALS))
    for run in runs.values():
        parts = adder.weights_of(run)
        assert sum(values.size for _name, values, *_ in parts) == adder.n_parameters(run.experiment)
        for _name, values, rows, columns, _words in parts:
            assert values.shape == (len(rows), len(columns))


def test_the_probe_reads_no_rounding(runs):
    """The shares of a stream in float64, whose rounding is far below the cut-off."""
    right = [adder.read_right(adder.carry_of(run)) for run in runs.values()]
    assert right == pytest.approx([0.894, 0.976, 0.800, 0.611], abs=0.002)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shares", "step"),
    [
        ([0.0, 0.5, 1.0, 1.0], 20),
        ([0.0, 1.0, 0.5, 1.0], 30),  # it was lost meanwhile
        ([0.0, 0.5, 0.99, 0.99], 20),
        ([0.0, 0.5, 0.98, 0.989], None),
        ([1.0, 1.0, 1.0], None),  # there from the start: nothing was learned
        ([0.0, 1.0, 1.0, 0.9], None),
        ([], None),
    ],
)
def test_the_carry_is_learned_where_it_stays(shares, step):
    history = pd.DataFrame({"step": 10 * np.arange(len(shares)), "carried": shares})
    assert learned(history) == step


@pytest.mark.quick
def test_carries_are_read_from_the_bits():
    a, b, _digit, carries = sums_of(["110100001", "000110010"])
    assert carries.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert (a + b + carries).tolist() == [[2, 2, 1], [0, 2, 2]]
