"""A sweep's figures show every trial and all that was searched, and claim no more than was run."""

import pytest

from tests.sweeps.made import HEADS, RATES, a_plan
from tfm_core.plots.training import sweeps as plots
from tfm_core.sweeps.study import Trial


def trial(number: int, rate: float, heads: int, value: float | None) -> Trial:
    return Trial(
        number, {RATES.path: rate, HEADS.path: heads},
        "complete" if value is not None else "diverged", f"run{number}", begun=True, value=value,
    )  # fmt: skip


TRIALS = [trial(n, 0.002 + 0.0005 * n, 1 + n % 2, 0.5 + 0.01 * n) for n in range(5)]


@pytest.fixture(scope="module")
def drawn():
    return plots.figures(a_plan(), [*TRIALS, trial(5, 0.04, 1, None)])


def test_trials_have_optunas_numbers(drawn):
    assert list(drawn["history"].data[0].x) == [0, 1, 2, 3, 4]
    assert len(drawn["slice"].data[0].x) == 5
    assert list(drawn["slice"].layout.xaxis2.categoryarray) == ["1", "2", "3", "4"]


def test_nothing_is_drawn_between_fewer_than_eight_trials():
    many = [trial(n, 0.002 + 0.0005 * n, 1 + n % 4, 0.5 + 0.01 * n) for n in range(8)]
    assert "contour" not in plots.figures(a_plan(), many[:7])
    assert "contour" in plots.figures(a_plan(), many)


def test_no_importance_rests_on_a_value_with_one_finished_trial(drawn):
    assert "importance" in drawn
    lonely = [*TRIALS[::2], trial(9, 0.004, 2, 0.2), trial(10, 0.006, 1, 0.3)]
    assert plots.thin_values(a_plan(), lonely) == [("n_heads", 2, 1)]
    found = plots.figures(a_plan(), lonely)
    assert "importance" not in found
    assert "slice" in found
