"""Heads that do nothing, on attention made by hand."""

import numpy as np
import pytest

from tfm_core.inspect.symptoms.in_heads import alikeness

EXAMPLES, HEADS, QUERIES, KEYS = 2, 3, 5, 7


@pytest.fixture
def allowed() -> np.ndarray:
    may_attend = np.ones((EXAMPLES, QUERIES, KEYS), bool)
    may_attend[0, :, 5:] = False  # padding
    return may_attend


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    weights = np.exp(scores) * allowed[:, None]
    return weights / weights.sum(-1, keepdims=True)


def test_even_or_fixed_heads_do_nothing_and_modules_of_them_are_dead(allowed) -> None:
    scores = np.random.default_rng(1).normal(size=(EXAMPLES, HEADS, QUERIES, KEYS)) * 3
    scores[:, 0] = 0.0  # even
    scores[:, 1] = [9.0, 0, 0, 0, 0, 0, 0]  # always the first key
    found = alikeness(softmax(scores, allowed), allowed)
    assert found.even[0] < 1e-6 < found.even[1]
    assert found.constant[1] < 0.01
    assert min(found.even[2], found.constant[2]) > 0.2
    assert not found.is_dead
    scores = np.zeros((EXAMPLES, HEADS, QUERIES, KEYS))
    assert alikeness(softmax(scores, allowed), allowed).is_dead
    only_one = np.zeros_like(allowed)
    only_one[..., 0] = True
    scores = np.zeros((EXAMPLES, HEADS, QUERIES, KEYS))
    assert not alikeness(softmax(scores, only_one), only_one).is_dead
