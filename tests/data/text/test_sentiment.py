"""Sentiment: the label is a function of the sentence, by the rule that the page states."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from tfm_core.data.text.sentiment import (
    ADJECTIVES,
    ALTHOUGH,
    AND,
    BUT,
    INTENSITIES,
    JOINS,
    LABELS,
    NEGATIONS,
    SentimentTask,
    judged,
)

TASK = SentimentTask(3)
OPPOSITE = {"positive": "negative", "neutral": "neutral", "negative": "positive"}


@pytest.fixture(scope="module")
def pairs():
    rng = random.Random(5)
    return [TASK.sample(rng) for _ in range(600)]


def label(text):
    return judged(text.split()).label


def test_the_rule_reads_short_forms_and_no_sentence_has_no_label():
    for text, expected in [
        ("good", "positive"),
        ("the food was not good", "negative"),
        ("the food was never not good", "positive"),
        ("not bad but the service was slow", "negative"),
        ("not bad although the service was slow", "positive"),
        ("the room was clean and the staff was rude", "neutral"),
        ("the room was very clean and the staff was rude", "positive"),
        ("slightly clean and the staff was rude", "negative"),
        ("the room was average", "neutral"),
        ("not average and bad", "negative"),
        ("bad although good but nice although awful", "positive"),
        ("good but bad and slow although nice", "negative"),
    ]:
        assert label(text) == expected
    for text in ["good bad", "the food good", "and good", "good and", "not", "the"]:
        assert TASK.solve(text.split()) is None
    tokens = TASK.tokenize("The food wasn't bad, but the service was VERY slow!")
    assert " ".join(tokens) == "the food was not bad but the service was very slow"
    assert TASK.solve(tokens) == ("negative",)


def test_words_turn_the_label_or_not_and_labels_are_equally_frequent(pairs):
    for pair in pairs:
        turned = []
        for index, word in enumerate(pair.src):
            begins = word in INTENSITIES or word in ADJECTIVES
            if begins and (index == 0 or pair.src[index - 1] not in INTENSITIES):
                turned.append("not")
            turned.append(word)
        assert judged(turned).label == OPPOSITE[pair.tgt[0]]
    for one, two in pairwise(pairs):
        if not set(JOINS) & {*one.src, *two.src}:
            there, back = [*one.src, AND, *two.src], [*two.src, AND, *one.src]
            assert judged(there).label == judged(back).label
    for one, two in pairwise(pairs):
        if BUT not in two.src:
            assert judged([*one.src, BUT, *two.src]).label == two.tgt[0]
        if BUT not in two.src and not {BUT, ALTHOUGH} & {*one.src}:
            assert judged([*one.src, ALTHOUGH, *two.src]).label == one.tgt[0]
    things = {"food": "view", "service": "music"}
    for pair in pairs:
        (decides,) = pair.alignment
        assert decides
        for index in decides:
            word = pair.src[index]
            assert word in {*NEGATIONS, *ADJECTIVES, *INTENSITIES, BUT, ALTHOUGH}
        other = [things.get(word, word) for word in pair.src]
        assert judged(other).label == pair.tgt[0]
    for pair in pairs:
        (decides,) = pair.alignment
        for index, word in enumerate(pair.src):
            if index not in decides and ADJECTIVES.get(word):
                turned = "bad" if ADJECTIVES[word] > 0 else "good"
                changed = [*pair.src[:index], turned, *pair.src[index + 1 :]]
                assert judged(changed).label == pair.tgt[0]
    counts = Counter(pair.tgt[0] for pair in pairs)
    assert set(counts) == set(LABELS)
    assert all(abs(count / len(pairs) - 1 / 3) < 0.08 for count in counts.values())
