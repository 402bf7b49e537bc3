"""Intervals of shares: known values, true coverage, and the luck of choosing."""

import itertools

import pytest
import torch

from tfm_core.inspect.compare.conclusions import best_of, wilson


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (8, 10, 0.4902, 0.9433), (81, 263, 0.2553, 0.3662), (5, 5, 0.5655, 1.0)],
)
def test_the_interval_has_its_published_ends(right, n, low, high):
    assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("right", "n"), [(3, 2), (-1, 5), (0, 0)])
def test_what_is_no_share_is_said(right, n):
    with pytest.raises(ValueError, match="is impossible"):
        wilson(right, n)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.93])
def test_it_holds_the_truth_about_as_often_as_it_says(share):
    n = 200
    k = torch.arange(n + 1, dtype=torch.float64)
    chances = torch.distributions.Binomial(n, torch.tensor(share, dtype=torch.float64))
    holds = torch.tensor([wilson(int(i), n)[0] <= share <= wilson(int(i), n)[1] for i in k])
    assert float(chances.log_prob(k).exp()[holds].sum()) == pytest.approx(0.95, abs=0.02)


def test_the_best_of_some_is_that_of_all_possible_outcomes():
    n, share, tries = 3, 0.7, 2
    chance = {
        k: sum(
            share ** sum(each) * (1 - share) ** (n - sum(each))
            for each in itertools.product((0, 1), repeat=n)
            if sum(each) == k
        )
        for k in range(n + 1)
    }
    expected = sum(
        chance[a] * chance[b] * max(a, b) / n for a in range(n + 1) for b in range(n + 1)
    )
    assert best_of(tries, share, n) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.0, 0.31, 0.93, 1.0])
def test_one_try_promises_what_is_true_and_more_tries_more(share):
    assert best_of(1, share, 500) == pytest.approx(share, abs=1e-9)
    assert best_of(20, share, 500) >= share
