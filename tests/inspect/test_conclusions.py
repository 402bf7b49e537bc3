"""Conclusions in words: another outcome gives another sentence, with the figures it rests on."""

import math

import pytest

from tfm_core.inspect.compare import conclusions

NAN = math.nan


def test_shares_are_told_apart_by_how_many_examples_there_are():
    assert conclusions.tells_apart(0.9, 0.8, 500)
    assert not conclusions.tells_apart(0.9, 0.8, 20)
    assert not conclusions.tells_apart(1.0, 1.0, 500)


@pytest.mark.parametrize(
    ("shares", "n", "words"),
    [
        ({"RNN": 0.99, "one": 0.8}, 500, "“RNN” (99.0%) is best, against “one” (80.0%)."),
        ({"RNN": 0.6, "one": 0.95}, 500, "“one” (95.0%) is best, against “RNN” (60.0%)."),
        ({"RNN": 0.99, "one": 0.98}, 100, "None is better: “RNN” (99.0%), “one” (98.0%)"),
        ({"a": 0.9, "b": 0.1, "c": 0.9}, 500, "“a” (90.0%), “c” (90.0%) are best"),
    ],
)
def test_who_answers_most_is_said_or_that_nobody_does(shares, n, words):
    assert words in conclusions.most_right(shares, n)


def test_one_model_is_no_comparison():
    assert conclusions.most_right({"RNN": 0.9}, 500) is None
    assert conclusions.best_aligned({"RNN": 0.9}, {}, 500) is None
    assert conclusions.beyond({"RNN": 0.9}, 500, 24, 12) is None


@pytest.mark.parametrize(
    ("attention", "right", "words"),
    [
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.6, "one": 0.99}, "not the most accurate"),
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.99, "one": 0.6}, "also the most accurate"),
        ({"RNN": 0.87, "one": 0.7}, {"RNN": 0.99, "one": 0.99}, "does not make it more accurate"),
        ({"RNN": 0.1, "one": 0.7}, {}, "“one” (70.0%) puts the most attention on the true words"),
    ],
)
def test_who_aligns_best_is_held_against_who_answers_best(attention, right, words):
    assert words in conclusions.best_aligned(attention, right, 500)


@pytest.mark.parametrize(
    ("hits", "words"), [(0, "in none of 40"), (40, "in all 40 rows"), (10, "in 10 of 40 rows, 25%")]
)
def test_whether_the_strong_cells_fill_the_frames_is_counted(hits, words):
    assert words in conclusions.strongest(hits, 40)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ({"ALiBi": 0.9, "learned": 0.1}, "“ALiBi” (90.0%) is best; then “learned” (10.0%)"),
        ({"ALiBi": 0.5, "learned": 0.5}, "none is better"),
        ({"a": 0.9, "b": 0.9, "c": 0.1}, "“a” (90.0%), “b” (90.0%) are best; then “c”"),
    ],
)
def test_which_kind_goes_on_beyond_its_length(tokens, words):
    said = conclusions.beyond(tokens, 200, 24, 12)
    assert "At 24 tokens (trained up to 12)" in said
    assert words in said


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (
            [["x", "y"], ["a", "b"], ["a", "b"]],
            "2 from layer 1. 0% are",
        ),
        (
            [["a", "y"], ["a", "y"], ["a", "b"]],
            "1 from the embedding, 1 from layer 2. 50% are",
        ),
        ([["x", "y"], ["x", "y"], ["a", "b"]], "None of 2 answers is settled"),
        ([["a"], ["x"], ["a"]], "None of 1 answers is settled"),
    ],
)
def test_from_which_layer_on_the_answers_stand(says, words):
    assert words in conclusions.settled(says)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((0.01, 0.0), (0.4, 0.02), "**became alike**: cosine 0.40 at step 1,000, 0.02 between"),
        ((0.01, 0.0), (0.03, 0.02), "**no more alike**"),
        ((0.4, 0.0), (0.1, 0.0), "**less** alike"),
    ],
)
def test_whether_words_of_a_class_became_alike(before, after, words):
    assert words in conclusions.classes_apart(before, after, 1000)


def test_a_table_without_classes_has_no_conclusion():
    assert conclusions.classes_apart((NAN, 0.0), (NAN, 0.0), 1) is None
