"""A sweep's figures show every trial and all that was searched, and claim no more than was run."""

from __future__ import annotations

import math

import pytest

from tests.sweeps.made import HEADS, RATES, a_plan
from tfm_core.plots.training import sweeps as plots
from tfm_core.sweeps.study import Trial


def trial(number: int, rate: float, heads: int, value: float | None, *reports: float) -> Trial:
    return Trial(
        number, "study", number, {RATES.path: rate, HEADS.path: heads},
        "complete" if value is not None else "pruned", value, f"run{number}", True, "",
        dict(enumerate(reports, 1)),
    )  # fmt: skip


FINISHED = [trial(n, 0.002 + 0.0005 * n, 1 + n % 2, 0.5 + 0.01 * n, 1.0, 0.7) for n in range(5)]
GIVEN_UP = [trial(5 + n, 0.02 + 0.005 * n, 1 + n % 2, None, 2.0 + n) for n in range(4)]


@pytest.fixture(scope="module")
def drawn():
    return plots.figures(a_plan(), [*FINISHED, *GIVEN_UP])


def test_given_up_trials_are_hollow_at_their_last_figure(drawn):
    rates, heads, *hollow = drawn["slice"].data
    assert (len(rates.x), len(heads.x)) == (5, 5)
    assert [trace.marker.symbol for trace in hollow] == ["circle-open"] * 2
    assert [list(trace.y) for trace in hollow] == [[2.0, 3.0, 4.0, 5.0]] * 2
    assert list(hollow[1].x) == ["1", "2", "1", "2"]
    assert list(drawn["slice"].layout.xaxis2.categoryarray) == ["1", "2", "3", "4"]
    hollow = drawn["contour"].data[-1]
    assert hollow.marker.symbol == "circle-open"
    assert len(hollow.x) == len(hollow.y) == 4
    lines = drawn["parallel"].data
    assert [line.line.dash for line in lines] == ["solid"] * 5 + ["dot"] * 4
    assert plots.counts(a_plan(), [*FINISHED, *GIVEN_UP]) == (5, 4)


def test_axes_span_what_is_searched(drawn):
    for name, axis in (("slice", "xaxis"), ("contour", "xaxis")):
        low, high = drawn[name].layout[axis].range
        assert low < math.log10(RATES.low)
        assert high > math.log10(RATES.high)
    rates = [line.y[1] for line in drawn["parallel"].data]
    span = math.log(RATES.high / RATES.low)
    expected = [math.log(0.002 / RATES.low) / span, math.log(0.035 / RATES.low) / span]
    assert [rates[0], rates[-1]] == pytest.approx(expected)


def test_trials_have_optunas_numbers(drawn):
    assert list(drawn["history"].data[0].x) == [0, 1, 2, 3, 4]
    assert [line.name for line in drawn["parallel"].data][:2] == ["trial 0", "trial 1"]


def test_no_importance_rests_on_a_value_with_one_finished_trial(drawn):
    assert "importance" in drawn
    lonely = [*FINISHED[::2], trial(9, 0.004, 2, 0.2, 1.0), trial(10, 0.006, 1, 0.3, 1.0)]
    assert plots.thin_values(a_plan(), lonely) == [("n_heads", 2, 1)]
    found = plots.figures(a_plan(), lonely)
    assert "importance" not in found
    assert {"contour", "slice", "parallel"} <= set(found)
