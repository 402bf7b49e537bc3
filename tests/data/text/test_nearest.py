"""The nearest sentence of a task's grammar to what a person typed."""

import random

import pytest

from tfm_core.choices.config import OwnTextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text import drawn
from tfm_core.data.text.english_sentences import is_possible
from tfm_core.data.text.nearest import WordChange, nearest_sentence

KOREAN = drawn("english-korean", 1)


@pytest.mark.parametrize("n_clauses", [1, 2])
def test_what_the_grammar_draws_is_known_as_such(n_clauses):
    task, rng = drawn("english-korean", n_clauses), random.Random(1)
    for _ in range(200):
        assert is_possible(list(task.sample(rng).src), n_clauses)


def test_what_is_no_sentence_becomes_the_nearest_one():
    for words in [
        "a dog like the cat",  # like, of one
        "a egg sees the cat",
        "a teacher eats a book",  # no food
        "the dog sleeps the cat",
        "a teacher bought a hat daily",  # no habit in the past
        "the teacher comes",  # to where?
        "a hungry book",
    ]:
        assert not is_possible(words.split(), 1)
    for name in ["dates", "copy", "addition", "masked-words"]:
        assert nearest_sentence(drawn(name, 4), "a dog sees a cat") is None
    task = text_task(OwnTextTaskConfig())
    assert nearest_sentence(task, "the cat looks for a dogs") is None
    found = nearest_sentence(KOREAN, "The kind teacher met a student in the park.")
    assert found.text == "The kind teacher met a student in the park."
    assert found.changes == ()
    for typed, text, change in [
        ("My dog likes the cat", "The dog likes the cat.", WordChange("my", "the")),
        ("A teachr bought a book", "A teacher bought a book.", WordChange("teachr", "teacher")),
        ("The dog loves an egg", "The dog likes an egg.", WordChange("loves", "likes")),
        ("The child ate a egg", "The child ate an egg.", WordChange("a", "an")),
    ]:
        found = nearest_sentence(KOREAN, typed)
        assert found.text == text
        assert change in found.changes


def test_whatever_is_typed_gets_a_sentence_that_the_grammar_draws():
    for typed, kept in [
        ("He goes to school every day", {"to", "school"}),
        ("I want to buy a red car tomorrow", {"red"}),
        ("Yesterday my little sister drew a beautiful flower", {"yesterday", "drew"}),
        ("The cat is sleeping in the garden", {"cat", "sleeps", "in", "garden"}),
        ("zzz qqq", set()),
    ]:
        found = nearest_sentence(KOREAN, typed)
        assert is_possible(list(found.tokens), 1)
        assert kept <= set(found.tokens)
        assert KOREAN.solve(found.tokens) is not None
        assert {change.typed for change in found.changes} <= {*typed.lower().split(), ""}


@pytest.mark.parametrize("name", ["numbers", "sentiment"])
def test_other_tasks_of_words_have_nearest_sentences_too(name):
    task = drawn(name, 3)
    typed = {"numbers": "fourty too", "sentiment": "the movie was really great"}[name]
    found = nearest_sentence(task, typed)
    assert task.solve(found.tokens) is not None
    assert found.text in {"forty two", "The film was really great."}
