"""Conclusions in words: another outcome gives another sentence, with the figures it rests on."""

import itertools

import pytest

from tfm_core.inspect.compare import conclusions
from tfm_core.inspect.compare.conclusions import expected_best, wilson


def test_shares_are_told_apart_and_who_answers_or_aligns_best_is_said():
    assert conclusions.is_clearly_higher(0.9, 0.8, 500)
    assert not conclusions.is_clearly_higher(0.9, 0.8, 20)
    assert not conclusions.is_clearly_higher(1.0, 1.0, 500)
    for shares, n, words in [
        ({"RNN": 0.99, "one": 0.8}, 500, "Best: “RNN” (99.0%), against “one” (80.0%)."),
        ({"RNN": 0.6, "one": 0.95}, 500, "Best: “one” (95.0%), against “RNN” (60.0%)."),
        ({"RNN": 0.99, "one": 0.98}, 100, "None is clearly better: “RNN” (99.0%), “one” (98.0%)"),
        ({"a": 0.9, "b": 0.1, "c": 0.9}, 500, "Best: “a” (90.0%), “c” (90.0%), against “b”"),
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
            "(trained up to 12): “ALiBi” (90.0%); then “learned” (10.0%)",
        ),
        ({"ALiBi": 0.5, "learned": 0.5}, "none is better"),
        ({"a": 0.9, "b": 0.9, "c": 0.1}, "“a” (90.0%), “b” (90.0%); then “c”"),
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
        ((0.4, 0.0), (0.1, 0.0), "**less** alike"),
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
