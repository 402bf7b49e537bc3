"""Conclusions are what the figures say, of shares and of several seeds."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tfm_core.inspect import conclusions
from tfm_core.inspect.conclusions import (
    ACCURACY,
    LOSS,
    Paired,
    curve_band,
    expected_best,
    holm_corrected,
    paired_sentence,
    paired_test,
    seed_spread,
    wilson,
)


def test_shares_are_told_apart_and_who_answers_or_aligns_best_is_said():
    assert conclusions.is_clearly_higher(0.9, 0.8, 500)
    assert not conclusions.is_clearly_higher(0.9, 0.8, 20)
    assert not conclusions.is_clearly_higher(1.0, 1.0, 500)
    for shares, n, words in [
        ({"RNN": 0.99, "one": 0.8}, 500, "Best: “RNN” (99.0%). The others: “one” (80.0%)."),
        ({"RNN": 0.6, "one": 0.95}, 500, "Best: “one” (95.0%). The others: “RNN” (60.0%)."),
        ({"RNN": 0.99, "one": 0.98}, 100, "None is clearly better: “RNN” (99.0%), “one” (98.0%)"),
        ({"a": 0.9, "b": 0.1, "c": 0.9}, 500, "Best: “a” (90.0%), “c” (90.0%). The others: “b”"),
    ]:
        assert words in conclusions.most_accurate(shares, n)
    for attention, right, words in [
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.6, "one": 0.99}, "not the most accurate"),
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.99, "one": 0.6}, "also the most accurate"),
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.99, "one": 0.99}, "not more accurate"),
        ({"RNN": 0.1, "one": 0.7}, {}, "“one” (70.0%) puts the most attention on the true words"),
    ]:
        assert words in conclusions.best_aligned(attention, right, 500)


def test_what_goes_on_longer_stands_early_or_became_alike_is_said():
    for tokens, words in [
        (
            {"ALiBi": 0.9, "learned": 0.1},
            "(trained up to 12): “ALiBi” (90.0%). Then “learned” (10.0%)",
        ),
        ({"ALiBi": 0.5, "learned": 0.5}, "none is clearly better"),
        ({"a": 0.9, "b": 0.9, "c": 0.1}, "“a” (90.0%), “b” (90.0%). Then “c”"),
    ]:
        said = conclusions.best_beyond_training(tokens, 200, 24, 12)
        assert "t 24 tokens (trained up to 12)" in said
        assert words in said
    for says, words in [
        (
            [["x", "y"], ["a", "b"], ["a", "b"]],
            "2 from layer 1. The last layer alone decides 0%.",
        ),
        (
            [["a", "y"], ["a", "y"], ["a", "b"]],
            "1 from the embedding, 1 from layer 2. The last layer alone decides 50%.",
        ),
        ([["x", "y"], ["x", "y"], ["a", "b"]], "None of 2 answers is settled"),
        ([["a"], ["x"], ["a"]], "None of 1 answers is settled"),
    ]:
        assert words in conclusions.settling_depths(says)
    for before, after, words in [
        (
            (0.01, 0.0),
            (0.4, 0.02),
            "**became more similar**. At step 1,000 their mean cosine is 0.40, and 0.02",
        ),
        ((0.01, 0.0), (0.03, 0.02), "**no more similar**"),
        ((0.4, 0.0), (0.1, 0.0), "**less** similar"),
    ]:
        assert words in conclusions.class_similarity(before, after, 1000)


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (8, 10, 0.4902, 0.9433), (81, 263, 0.2553, 0.3662), (5, 5, 0.5655, 1.0)],
)
def test_the_interval_has_its_published_ends(right, n, low, high):
    assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)
    for impossible in [(3, 2), (-1, 5), (0, 0)]:
        with pytest.raises(ValueError, match="is impossible"):
            wilson(*impossible)


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
    assert expected_best(tries, share, n) == pytest.approx(expected)


FIRST = {0: 0.91, 1: 0.89, 2: 0.90, 3: 0.92, 4: 0.885}
BETTER = {seed: value + 0.02 + 0.001 * seed for seed, value in FIRST.items()}


def test_mean_and_deviation_are_of_a_sample_without_what_diverged():
    found = seed_spread(FIRST, ACCURACY)
    assert found.n == 5
    assert found.mean == pytest.approx(sum(FIRST.values()) / 5)
    assert found.sd == pytest.approx(stats.tstd(list(FIRST.values())))
    found = seed_spread({**FIRST, 7: math.nan, 5: None, 6: math.inf}, LOSS)
    assert found.mean == pytest.approx(np.mean(list(FIRST.values())))
    assert (found.n, found.lost) == (5, (5, 6, 7))
    assert (found.worst_seed, found.worst) == (5, None)
    assert "No result from seeds 5, 6, 7." in found.sentence
    found = paired_test({0: 0.5, 1: 0.6, 2: None, 3: 0.7}, {3: 0.9, 1: 0.7, 2: 0.8, 9: 0.1})
    assert found.seeds == (1, 3)
    assert found.mean == pytest.approx(0.15)


@pytest.mark.parametrize(("measure", "seed"), [(ACCURACY, 4), (LOSS, 3)])
def test_the_worst_seed_is_the_lowest_accuracy_and_the_highest_loss(measure, seed):
    found = seed_spread(FIRST, measure)
    assert (found.worst_seed, found.worst) == (seed, FIRST[seed])


def test_one_seed_says_nothing_and_figures_have_the_digits_of_their_spread():
    alone = seed_spread({3: 0.5}, ACCURACY)
    assert alone.sd is None
    assert alone.sentence == "50.0% with one seed, so the spread is unknown."
    assert seed_spread({}, LOSS).sentence == "No seed has a result yet."
    assert seed_spread({3: None}, LOSS).sentence == "No result from seed 3."
    one = paired_test({0: 0.5}, {0: 0.7, 1: 0.9})
    assert (one.kind, one.p, one.stands_out) == ("one", None, False)
    assert "only one seed" in paired_sentence(one, ACCURACY, "a", "b")
    none = paired_test({0: 0.5}, {1: 0.9})
    assert none.kind == "none"
    assert "share no seed" in paired_sentence(none, ACCURACY, "a", "b")
    words = seed_spread(FIRST, ACCURACY).sentence
    assert words == (
        "90.1% ± 1.4 points (mean ± standard deviation, n = 5 seeds). Worst: 88.5% (seed 4)."
    )
    close = seed_spread({0: 0.98611, 1: 0.98599}, ACCURACY).sentence
    assert close.startswith("98.6050% ± 0.0085 points")
    assert seed_spread({0: 0.5, 1: 0.5}, LOSS).sentence.startswith("0.500 ± 0.000 (mean")


@pytest.mark.parametrize("n", [2, 3, 5, 13])
def test_the_paired_test_is_scipys(n):
    draw = np.random.default_rng(n)
    a, b = draw.normal(0.8, 0.02, n), draw.normal(0.81, 0.02, n)
    found = paired_test(dict(enumerate(a)), dict(enumerate(b)))
    expected = stats.ttest_1samp(b - a, 0)
    half = stats.t.ppf(0.975, n - 1) * np.std(b - a, ddof=1) / math.sqrt(n)
    assert found.kind == "tested"
    assert found.p == pytest.approx(expected.pvalue)
    assert found.mean == pytest.approx(float(np.mean(b - a)))
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half))
    assert found.effect == pytest.approx(expected.statistic / math.sqrt(n))


def test_a_difference_is_said_where_the_spread_does_not_explain_it():
    words = paired_sentence(paired_test(FIRST, BETTER), ACCURACY, "4 heads", "8 heads")
    assert words.startswith(
        "“8 heads” is 2.20 points above “4 heads”. The spread between seeds does not explain it. "
        "Paired t-test, n = 5 pairs, p < 0.001; 95% confidence interval 2.00 points "
        "to 2.40 points."
    )
    turned = paired_sentence(paired_test(BETTER, FIRST), ACCURACY, "8 heads", "4 heads")
    assert turned.startswith("“4 heads” is 2.20 points below “8 heads”")
    assert "interval 2.00 points to 2.40 points" in turned
    other = dict(zip(FIRST, [0.90, 0.91, 0.88, 0.925, 0.90], strict=True))
    found = paired_test(FIRST, other)
    assert not found.stands_out
    words = paired_sentence(found, ACCURACY, "4 heads", "8 heads")
    assert "may explain it" in words
    assert "interval −" in words
    assert "does not explain" not in words
    same = paired_test(FIRST, dict(FIRST))
    assert (same.kind, same.p, same.mean) == ("same", None, 0.0)
    assert paired_sentence(same, LOSS, "a", "b").startswith("“b” and “a” are equal with each of 5")
    as_kept = {seed: float(np.float32(value)) + 0.25 for seed, value in FIRST.items()}
    constant = paired_test(FIRST, as_kept)
    assert (constant.kind, constant.p) == ("constant", None)
    assert "the paired t-test does not apply" in paired_sentence(constant, ACCURACY, "a", "b")


def test_a_band_is_mean_and_deviation_and_interpolates_each_curve():
    steps = np.array([0, 3, 7, 11])
    values = np.random.default_rng(0).normal(size=(5, 4))
    found = curve_band([(steps, row) for row in values])
    assert found.steps.tolist() == steps.tolist()
    np.testing.assert_allclose(found.mean, values.mean(axis=0))
    np.testing.assert_allclose(found.high - found.mean, values.std(axis=0, ddof=1))
    np.testing.assert_allclose(found.mean - found.low, values.std(axis=0, ddof=1))
    assert found.n.tolist() == [5] * 4
    found = curve_band(
        [([0, 2, 4, 6], [1, 2, 3, 4]), ([0, 2, 3, 4], [3, 4, 9, 5]), ([2], [np.nan])]
    )
    assert found.steps.tolist() == [0, 2, 3, 4, 4, 6]  # at step 4 one of two ends
    assert found.mean.tolist() == [2, 3, 5.75, 4, 3, 4]
    assert found.n.tolist() == [2, 2, 2, 2, 1, 1]
    assert found.low[-1] == found.high[-1] == 4
    assert found.n_curves == 2
    assert len(curve_band([]).steps) == len(curve_band([([1], [np.inf])]).steps) == 0
    assert curve_band([([5], [0.25])]).mean.tolist() == [0.25]


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_lies_within_its_curves_wherever_it_is_drawn(seed):
    rng = np.random.default_rng(seed)
    curves = []
    for _ in range(5):
        inner = rng.choice(np.arange(1, 97), size=7, replace=False)
        ends = (rng.integers(0, 11), 97 + rng.integers(0, 11))
        steps = np.sort(np.unique([*inner, *ends])).astype(float)
        curves.append((steps, rng.normal(size=len(steps))))
    found = curve_band(curves)
    for i in range(len(found.steps) - 1):
        left, right = found.steps[i : i + 2]
        if left == right:
            continue
        for share in (0.01, 0.3, 0.99):
            x = left + share * (right - left)
            mean = found.mean[i] + share * (found.mean[i + 1] - found.mean[i])
            there = [np.interp(x, *one) for one in curves if one[0][0] <= x <= one[0][-1]]
            assert min(there) - 1e-9 <= mean <= max(there) + 1e-9
            np.testing.assert_allclose(mean, np.mean(there))


def test_p_values_of_comparisons_that_are_shown_together_are_holms_and_say_so():
    ps = [0.03, 0.01, 0.04, 0.005]
    found = holm_corrected([*(Paired("tested", p=p) for p in ps), Paired("one"), Paired("same")])
    expected = by_definition(ps)
    assert [one.p for one in found[:4]] == pytest.approx(expected)
    assert [one.stands_out for one in found[:4]] == [False, True, False, True]
    assert [one.n_tests for one in found] == [4, 4, 4, 4, 1, 1]
    assert holm_corrected([Paired("tested", p=0.03)])[0] == Paired("tested", p=0.03)
    one = paired_test(FIRST, BETTER)
    words = paired_sentence(holm_corrected([one, one])[0], ACCURACY, "4 heads", "8 heads")
    assert "with Holm’s correction for 2 comparisons" in words
    assert "Holm" not in paired_sentence(one, ACCURACY, "4 heads", "8 heads")


def by_definition(ps):
    """Holm's step-down by its definition: the largest of all smaller ones, times those left."""
    ordered = sorted(ps)
    adjusted = [min(1.0, (len(ps) - k) * p) for k, p in enumerate(ordered)]
    return [max(adjusted[: ordered.index(p) + 1]) for p in ps]
