"""A gloss is the source word that a target token truly comes from."""

import random
from collections import Counter

import pytest

from tfm_core.data.text import drawn
from tfm_core.data.text.glosses import glosses

ENDINGS = {"을", "를", "다"}
"""What stands behind every object and every verb."""


@pytest.mark.parametrize("n_clauses", [1, 2])
def test_every_token_but_endings_has_a_word_it_was_aligned_with(n_clauses: int) -> None:
    task = drawn("english-korean", n_clauses)
    known = glosses(task)
    assert set(task.tgt_vocabulary.tokens) - ENDINGS == set(known)
    words = {"선생님": "teacher", "큰": "big", "과": "and", "는": "the", "샀": "bought"}
    assert {token: known[token] for token in words} == words
    rng = random.Random(7)
    hits: Counter[bool] = Counter()
    for pair in (task.sample(rng) for _ in range(97)):
        for token, positions in zip(pair.tgt, pair.alignment, strict=True):
            if token in known:
                hits[known[token] in {pair.src[position] for position in positions}] += 1
    assert hits[True] > 0.85 * hits.total()  # the rest: “sleep” where the gloss is “sleeps”
