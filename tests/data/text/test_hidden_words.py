"""Masked words and spans: the exact chances against drawn sentences and against enumeration."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from tfm_core.choices.config import TextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text import english_sentences
from tfm_core.data.text.english_sentences import completions
from tfm_core.data.text.hidden_words import (
    SENTINELS,
    chance_in_data,
    n_hidden,
    n_spans,
    span_posterior,
    whole_sentence,
    word_posterior,
)
from tfm_core.data.text.task import Pair
from tfm_core.data.text_data import load_text
from tfm_core.data.vocabulary import MASK

TASK = text_task(TextTaskConfig(name="masked-words", size=15))

N = 30_000


@pytest.fixture(scope="module")
def drawn():
    rng = random.Random(2)
    return [TASK.sample(rng).tgt for _ in range(N)]


def test_chances_of_sentences_are_their_shares_of_the_draws(drawn):
    every = completions((None,) * 3)
    share = sum(len(words) == 3 for words in drawn) / N
    assert sum(every.values()) == pytest.approx(share, abs=4 * math.sqrt(share / N))
    counts = Counter(words for words in drawn if len(words) == 3)
    assert set(counts) <= set(every)
    expected = {words: N * chance for words, chance in every.items()}
    square = sum((counts[words] - n) ** 2 / n for words, n in expected.items())
    assert abs(square - len(every)) < 5 * math.sqrt(2 * len(every))  # chi-squared
    rng = random.Random(3)
    for words in drawn[:100]:
        hidden = set(rng.sample(range(len(words)), 2))
        pattern = tuple(None if index in hidden else word for index, word in enumerate(words))
        found = completions(pattern)
        assert found[words] == pytest.approx(completions(words)[words])
        for other in found:
            assert any(english_sentences.parses(list(other), 1))
            assert all(a in (None, b) for a, b in zip(pattern, other, strict=True))


def test_gaps_hold_exactly_what_makes_a_sentence_and_are_typed_as_lines(drawn):
    """Brute force: every word of the vocabulary is tried, and its sentence's chance taken."""
    rng = random.Random(4)
    for words in drawn[:15]:
        index = rng.randrange(len(words))
        tried = {}
        for word in english_sentences.WORDS:
            sentence = (*words[:index], word, *words[index + 1 :])
            chance = completions(sentence).get(sentence)
            if chance is not None:
                tried[word] = chance_in_data(chance, 1000)
        src = (*words[:index], MASK, *words[index + 1 :])
        found = word_posterior(src, 1000)[index]
        assert set(found) == set(tried)
        for word, share in found.items():
            assert share == pytest.approx(tried[word] / sum(tried.values()))
    tokens = TASK.tokenize("The ____ eats ___ apple.")
    assert tokens == ("the", MASK, "eats", MASK, "apple")
    assert TASK.join_src(tokens) == "The ___ eats ___ apple."
    assert TASK.solve(("the", "dog", "eats", MASK, "apple")) is None  # “the” or “an”
    only = TASK.solve(("the", MASK, "friend", "comes", MASK, "the", "school"))
    assert only is None or only[4] == "to"


def test_the_posterior_is_what_kept_sentences_show_and_frequent_ones_are_few():
    """Of many data sets of distinct sentences: which word stood in the gap how often?"""
    pattern, n = (None, "dog", "sleeps"), 4000
    every = completions(pattern)
    counts, n_draws, rng = Counter(), [], random.Random(9)
    for _ in range(25):
        kept = {TASK.sample(rng).tgt for _ in range(n)}
        n_draws.append(n)
        counts.update(words for words in kept if words in every)
    expected = {words: 25 * chance_in_data(chance, n) for words, chance in every.items()}
    for words, count in expected.items():
        assert counts[words] == pytest.approx(count, abs=5 * math.sqrt(count))
    assert chance_in_data(0.5, 1000) == pytest.approx(1)
    assert chance_in_data(1e-9, 1000) == pytest.approx(1e-6, rel=1e-3)
    assert word_posterior(("dog", MASK, "the"), 1000) == {}
    with pytest.raises(ValueError, match=r"6 are hidden"):
        word_posterior((MASK,) * 6, 1000)


def test_words_are_hidden_as_bert_hides_them(drawn):
    assert [n_hidden(n, 15) for n in (3, 7, 9, 11, 16)] == [1, 1, 1, 2, 2]
    rng = random.Random(6)
    for _ in range(200):
        pair = TASK.sample(rng)
        assert pair.src.count(MASK) == n_hidden(len(pair.tgt), 15)
        assert all(a in (MASK, b) for a, b in zip(pair.src, pair.tgt, strict=True))


PERCENT = 30

SPANS = text_task(TextTaskConfig(name="span-corruption", size=PERCENT))


@pytest.fixture(scope="module")
def pairs():
    rng = random.Random(5)
    return [SPANS.sample(rng) for _ in range(400)]


def test_the_papers_example_is_put_together_again_and_lines_are_sentinels():
    """Raffel et al. 2020, Figure 2."""
    src = f"thank you {SENTINELS[0]} me to your party {SENTINELS[1]} week"
    tgt = f"{SENTINELS[0]} for inviting {SENTINELS[1]} last {SENTINELS[2]}"
    pair = Pair(tuple(src.split()), tuple(tgt.split()), ())
    assert " ".join(whole_sentence(pair)) == "thank you for inviting me to your party last week"
    tokens = ("the", SENTINELS[0], "drew", SENTINELS[1], "cat")
    assert SPANS.tokenize("The ___ drew <extra_id_7> cat.") == tokens
    with pytest.raises(ValueError, match="at most 4 hidden spans"):
        SPANS.tokenize("___ the ___ the ___ the ___ the ___")


def test_spans_are_hidden_and_aligned_as_the_task_says(pairs):
    seen = Counter()
    for pair in pairs:
        words = whole_sentence(pair)
        at = [position for position, token in enumerate(pair.src) if token in SENTINELS]
        hidden = len(words) - (len(pair.src) - len(at))
        seen[len(at)] += 1
        assert hidden == n_hidden(len(words), PERCENT)
        assert len(at) == n_spans(hidden)
        assert all(b - a > 1 for a, b in pairwise(at))  # else it were one span
        assert [pair.src[i] for i in at] == list(SENTINELS[: len(at)])
        assert [t for t in pair.tgt if t in SENTINELS] == list(SENTINELS[: len(at) + 1])
        assert pair.tgt[-1] == SENTINELS[len(at)]
        assert len(pair.tgt) == hidden + len(at) + 1
    assert seen[1]
    assert seen[2]
    for pair in pairs:
        for token, at in zip(pair.tgt, pair.alignment, strict=True):
            is_there = token in SENTINELS and token in pair.src
            assert [pair.src[i] for i in at] == ([token] if is_there else [])


def test_hidden_spans_and_their_posterior_are_what_drawn_pairs_show():
    """Of many pairs with one source: how often is which answer the true one?"""
    rng = random.Random(8)
    drawn = Counter()
    for _ in range(60_000):
        pair = SPANS.sample(rng)
        drawn[pair.src, pair.tgt] += 1
    sources = Counter(source for source, _ in drawn.elements())
    for source, n in sources.most_common(5):
        found = span_posterior(source, PERCENT, 1)  # of one draw: as drawn, nothing is thinned out
        assert sum(found.values()) == pytest.approx(1)
        square = sum((drawn[source, tgt] - n * p) ** 2 / (n * p) for tgt, p in found.items())
        assert {tgt for s, tgt in drawn if s == source} <= set(found)
        assert square < len(found) + 5 * math.sqrt(2 * len(found))  # chi-squared
    found = span_posterior(("the", "doctor", SENTINELS[0], "bag", "today"), PERCENT, 1000)
    assert {len(target) for target in found} == {4}  # 4 seen and 2 hidden are 6
    assert span_posterior(("the", "doctor"), PERCENT, 1000) == {}
    assert span_posterior(("doctor", "the", SENTINELS[0]), PERCENT, 1000) == {}
    config = TextTaskConfig(name="span-corruption", size=PERCENT, n_train=3000, n_validation=100)
    data = load_text(config, seed=1)
    parts = [
        {whole_sentence(p) for p in part.pairs} for part in (data.train, data.validation, data.test)
    ]
    assert len(set().union(*parts)) == sum(map(len, parts)) == 4100
