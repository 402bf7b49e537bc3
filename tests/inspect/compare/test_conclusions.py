"""Conclusions in words: another outcome gives another sentence, with the figures it rests on."""

import itertools
import math

import pytest
import torch

from tfm_core.inspect.compare import conclusions
from tfm_core.inspect.compare.conclusions import best_of, wilson

NAN = math.nan


def test_shares_are_told_apart_by_how_many_examples_there_are():
    assert conclusions.tells_apart(0.9, 0.8, 500)
    assert not conclusions.tells_apart(0.9, 0.8, 20)
    assert not conclusions.tells_apart(1.0, 1.0, 500)


def test_who_answers_most_is_said_or_that_nobody_does():
    for shares, n, words in [
        ({"RNN": 0.99, "one": 0.8}, 500, "Best: “RNN” (99.0%), against “one” (80.0%)."),
        ({"RNN": 0.6, "one": 0.95}, 500, "Best: “one” (95.0%), against “RNN” (60.0%)."),
        ({"RNN": 0.99, "one": 0.98}, 100, "None is better: “RNN” (99.0%), “one” (98.0%)"),
        ({"a": 0.9, "b": 0.1, "c": 0.9}, 500, "Best: “a” (90.0%), “c” (90.0%), against “b”"),
    ]:
        assert words in conclusions.most_right(shares, n)


def test_one_model_is_no_comparison():
    assert conclusions.most_right({"RNN": 0.9}, 500) is None
    assert conclusions.best_aligned({"RNN": 0.9}, {}, 500) is None
    assert conclusions.beyond({"RNN": 0.9}, 500, 24, 12) is None


def test_who_aligns_best_is_held_against_who_answers_best():
    for attention, right, words in [
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.6, "one": 0.99}, "not the most accurate"),
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.99, "one": 0.6}, "also the most accurate"),
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.99, "one": 0.99}, "not more accurate"),
        ({"RNN": 0.1, "one": 0.7}, {}, "“one” (70.0%) puts the most attention on the true words"),
    ]:
        assert words in conclusions.best_aligned(attention, right, 500)


def test_whether_the_strong_cells_fill_the_frames_is_counted():
    for hits, words in [
        (0, "in none of 40"),
        (40, "in all 40 rows"),
        (10, "in 10 of 40 rows, 25%"),
    ]:
        assert words in conclusions.strongest(hits, 40)


def test_which_kind_goes_on_beyond_its_length():
    for tokens, words in [
        (
            {"ALiBi": 0.9, "learned": 0.1},
            "(trained up to 12): “ALiBi” (90.0%); then “learned” (10.0%)",
        ),
        ({"ALiBi": 0.5, "learned": 0.5}, "none is better"),
        ({"a": 0.9, "b": 0.9, "c": 0.1}, "“a” (90.0%), “b” (90.0%); then “c”"),
    ]:
        said = conclusions.beyond(tokens, 200, 24, 12)
        assert "t 24 tokens (trained up to 12)" in said
        assert words in said


def test_from_which_layer_on_the_answers_stand():
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
        assert words in conclusions.settled(says)


def test_whether_words_of_a_class_became_alike():
    for before, after, words in [
        (
            (0.01, 0.0),
            (0.4, 0.02),
            "**became alike**. Their cosine is 0.40 at step 1,000, 0.02 between",
        ),
        ((0.01, 0.0), (0.03, 0.02), "**no more alike**"),
        ((0.4, 0.0), (0.1, 0.0), "**less** alike"),
    ]:
        assert words in conclusions.classes_apart(before, after, 1000)


def test_a_table_without_classes_has_no_conclusion():
    assert conclusions.classes_apart((NAN, 0.0), (NAN, 0.0), 1) is None


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (8, 10, 0.4902, 0.9433), (81, 263, 0.2553, 0.3662), (5, 5, 0.5655, 1.0)],
)
def test_the_interval_has_its_published_ends(right, n, low, high):
    assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)


def test_what_is_no_share_is_said():
    for right, n in [(3, 2), (-1, 5), (0, 0)]:
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
