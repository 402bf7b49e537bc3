"""Questions of the topics: the answer is computed, and each wrong one gets a reason."""

import numpy as np
import pandas as pd
import pytest
import torch

from tfm_core.data.vocabulary import UNK
from tfm_core.inspect.attention.alignment import about_alignment, about_growth
from tfm_core.inspect.conclusions import shares_right
from tfm_core.inspect.generation import about_temperature
from tfm_core.inspect.questions import Question
from tfm_core.inspect.tensors.operations import OPERATIONS, parse_arguments
from tfm_core.inspect.tensors.sight import InputSpec, about_strides, about_view, run_operation
from tfm_core.inspect.text import tokenise
from tfm_core.inspect.text.language_model import about_order
from tfm_core.inspect.text.sentence import Blank, SentenceReading, about_gap, about_word
from tfm_core.inspect.text.tokenise import about_compound, about_padding, compound_of
from tfm_core.studies.practice import about_choosing, about_precision, about_weakest
from tfm_core.trace.learning import guessing_question, step_question


def sound(question: Question) -> Question:
    """Check that every wrong option has a reason, and the right one none."""
    assert question.is_right(question.answer)
    assert len(set(question.options)) == len(question.options)
    right = {question.answer, *question.also}
    for option in question.options:
        assert bool(question.why_not(option)) == (option not in right), option
    if not question.options:
        assert question.hint
        assert all(question.wrong.values())
    return question


none = np.zeros(0, np.float32)
TEXT = "the tallest dog sees a small cat, the small dog sees it"


def test_questions_on_words_padding_and_axes_are_asked_where_they_fit() -> None:
    word = compound_of(TEXT)
    assert word == "tallestsmall"
    learned = tokenise.learn_bpe(tokenise.words_of(TEXT))
    tokens = tokenise.bpe_tokens(learned, [word], len(learned.merges))
    assert sound(about_compound(word, tokens)).answer == str(len(tokens))
    unknown = tokenise.by_word(word, tokenise.vocabulary(tokenise.word_counts(TEXT)))
    assert [token.id for token in unknown] == [UNK]
    assert sound(about_compound(word, unknown)).answer == "1"
    assert sound(about_compound(word, tokenise.by_byte(word))).answer == str(len(word.encode()))
    assert compound_of("one") == compound_of("3 5 7") == ""
    sentences = [["a"], ["a", "b", "c"], ["d", "e"]]
    made = tokenise.batch(sentences, length=5)
    longer = tokenise.batch([*sentences, ["f"] * 5], length=7)
    asked = sound(about_padding(made))
    assert asked.answer == str(int((~longer.mask[:3]).sum())) == "9"
    after = run_operation(
        "view", InputSpec((6,)), parse_arguments(OPERATIONS["view"], {"sizes": "6"})
    ).after
    assert after is not None
    assert about_strides(after) is None
    assert about_view(after) is None


@pytest.mark.parametrize(
    ("shape", "order"), [((2, 3, 5), "2, 0, 1"), ((7, 3), "1, 0"), ((1, 5), "0, 1")]
)
def test_strides_and_views_are_those_of_torch(shape: tuple[int, ...], order: str) -> None:
    after = run_operation(
        "permute", InputSpec(shape), parse_arguments(OPERATIONS["permute"], {"dims": order})
    ).after
    assert after is not None
    y = torch.arange(len(after.storage)).as_strided(after.shape, after.strides, after.offset)
    swapped = y.transpose(0, -1)
    asked = about_strides(after)
    assert asked is None or sound(asked).answer == f"({', '.join(map(str, swapped.stride()))})"
    try:
        swapped.view(-1)
        works = True
    except RuntimeError:
        works = False
    viewed = about_view(after)
    assert viewed is not None
    assert sound(viewed).answer.startswith("Yes" if works else "No")


def read_as(perplexity: float) -> pd.DataFrame:
    return pd.DataFrame({"nats": np.full(7, np.log(perplexity))})


@pytest.mark.parametrize(("other", "said"), [(9.0, "Worse"), (5.1, "About"), (3.0, "Better")])
def test_a_text_read_backwards_is_as_the_model_reads_it(other: float, said: str) -> None:
    asked = sound(about_order(read_as(5.0), read_as(other)))
    assert asked.answer.startswith(said)
    assert f"{other:.2f}" in asked.because


def drawn(share: float) -> pd.DataFrame:
    return pd.DataFrame({"token": ["dog", "cat"], "after": [share, 1 - share]})


@pytest.mark.parametrize(("other", "said"), [(0.5, "falls"), (0.8, "rises"), (0.7, "same")])
def test_temperature_is_asked_as_the_model_answers(other: float, said: str) -> None:
    assert said in sound(about_temperature(drawn(0.7), drawn(other))).answer


def test_heads_classes_and_steps_are_asked_about_as_measured() -> None:
    asked = about_alignment({"RNN": 0.31, "one head": 0.57, "four": 0.47})
    assert asked is not None
    assert sound(asked).answer == "one head"
    assert about_alignment({"RNN": 0.5, "one": 0.5}) is None
    assert about_alignment({"RNN": 0.5}) is None
    assert sound(about_growth(16, 13.2, 5.8)).answer == "13"
    assert sound(about_weakest(by_class({0: 2, 1: 5}))).answer == "dog"
    asked = sound(about_weakest(by_class({0: 5, 2: 5})))
    assert all(map(asked.is_right, ("cat", "hen")))
    assert not asked.is_right("dog")
    for n in (50, 500, 10_000):
        assert sound(about_precision(n)).answer == "Half"
    assert sound(about_choosing()).answer == "Validation"
    asked = sound(guessing_question(43))
    assert float(asked.answer) == pytest.approx(np.log(43), abs=0.005)
    for after, said in ((1.3, "falls"), (2.1, "rises"), (1.7, "same"), (np.inf, "rises")):
        assert said in sound(step_question(0.1, 1.7, after)).answer


def by_class(wrong: dict[int, int]) -> pd.DataFrame:
    """Return shares of 11 pictures of each of 3 classes, some of which are wrong."""
    names = ("cat", "dog", "hen")
    return shares_right((name, 11 - wrong.get(n, 0), 11) for n, name in enumerate(names))


def test_the_word_that_counts_costs_most_and_the_likeliest_of_a_gap_is_the_models() -> None:
    words = ("the", "food", "was", "the", "worst")
    shares = np.array([0.1, 0.9], np.float32)
    without = np.array([[0.1, 0.9], [0.2, 0.8], [0.1, 0.9], [0.3, 0.7], [0.95, 0.05]], np.float32)
    parts = {"heads": none, "rollout": none, "relevance": none, "rule": None}
    reading = SentenceReading(7, words, words, ("bad", "good"), shares, without=without, **parts)
    asked = about_word(reading)
    assert asked is not None
    assert sound(asked).answer == "worst"
    assert "the" in asked.options  # once, though it stands there twice
    assert len(set(asked.options)) == len(asked.options) == 4
    alike = SentenceReading(
        7, words, words, ("bad", "good"), shares, without=np.tile(shares, (5, 1)), **parts
    )
    assert about_word(alike) is None
    model = {"eats": 0.5, "sees": 0.3, "has": 0.1, "buys": 0.05, "hates": 0.03, "likes": 0.02}
    asked = about_gap(Blank(3, model, {"sees": 1.0}, none))
    assert asked is not None
    assert sound(asked).answer == "eats"
    assert "likes" not in asked.options
    assert about_gap(Blank(3, {"eats": 0.5, "sees": 0.5}, {}, none)) is None
