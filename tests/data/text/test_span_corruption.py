"""Span corruption: T5's form, and the exact chances against drawn pairs."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from tfm_core.choices.config import TextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text.masked_words import n_hidden
from tfm_core.data.text.span_corruption import SENTINELS, n_spans, posterior, whole
from tfm_core.data.text.task import Pair
from tfm_core.data.text_data import load_text

PERCENT = 30
TASK = text_task(TextTaskConfig(name="span-corruption", size=PERCENT))


@pytest.fixture(scope="module")
def pairs():
    rng = random.Random(5)
    return [TASK.sample(rng) for _ in range(400)]


def test_the_papers_example_is_put_together_again_and_lines_are_sentinels():
    """Raffel et al. 2020, Figure 2."""
    src = f"thank you {SENTINELS[0]} me to your party {SENTINELS[1]} week"
    tgt = f"{SENTINELS[0]} for inviting {SENTINELS[1]} last {SENTINELS[2]}"
    pair = Pair(tuple(src.split()), tuple(tgt.split()), ())
    assert " ".join(whole(pair)) == "thank you for inviting me to your party last week"
    tokens = ("the", SENTINELS[0], "drew", SENTINELS[1], "cat")
    assert TASK.tokenize("The ___ drew <extra_id_7> cat.") == tokens
    with pytest.raises(ValueError, match="at most 4 hidden spans"):
        TASK.tokenize("___ the ___ the ___ the ___ the ___")


def test_spans_are_hidden_and_aligned_as_the_task_says(pairs):
    seen = Counter()
    for pair in pairs:
        words = whole(pair)
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
        pair = TASK.sample(rng)
        drawn[pair.src, pair.tgt] += 1
    sources = Counter(source for source, _ in drawn.elements())
    for source, n in sources.most_common(5):
        found = posterior(source, PERCENT, 1)  # of one draw: as drawn, nothing is thinned out
        assert sum(found.values()) == pytest.approx(1)
        square = sum((drawn[source, tgt] - n * p) ** 2 / (n * p) for tgt, p in found.items())
        assert {tgt for s, tgt in drawn if s == source} <= set(found)
        assert square < len(found) + 5 * math.sqrt(2 * len(found))  # chi-squared
    found = posterior(("the", "doctor", SENTINELS[0], "bag", "today"), PERCENT, 1000)
    assert {len(target) for target in found} == {4}  # 4 seen and 2 hidden are 6
    assert posterior(("the", "doctor"), PERCENT, 1000) == {}
    assert posterior(("doctor", "the", SENTINELS[0]), PERCENT, 1000) == {}
    config = TextTaskConfig(name="span-corruption", size=PERCENT, n_train=3000, n_validation=100)
    data = load_text(config, seed=1)
    parts = [{whole(p) for p in part.pairs} for part in (data.train, data.validation, data.test)]
    assert len(set().union(*parts)) == sum(map(len, parts)) == 4100
