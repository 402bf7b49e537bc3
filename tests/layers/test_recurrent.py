"""Scores of recurrent attention against their formulas, number by number."""

import math

import pytest
import torch

from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.record import resolve
from tfm_core.layers.recurrent import EncodedSource, RecurrentAttention

pytestmark = pytest.mark.quick

D, B, Q, K = 7, 2, 3, 5


@pytest.fixture
def states():
    generator = torch.Generator().manual_seed(3)
    return (torch.randn(B, n, D, generator=generator, dtype=torch.float64) for n in (Q, K))


def made(name):
    torch.manual_seed(5)
    return resolve(ALIGNMENT_SCORES[name].layer)(D).double()


def by_hand(name, score, s, h):
    """One score, from two vectors, as the papers write it: loops and lists, no tensors."""
    s, h = s.tolist(), h.tolist()

    def times(matrix, x):
        return [sum(w * v for w, v in zip(row, x, strict=True)) for row in matrix.tolist()]

    if name == "dot":
        return sum(a * b for a, b in zip(s, h, strict=True))
    if name == "general":
        return sum(a * b for a, b in zip(s, times(score.matrix.weight, h), strict=True))
    if name == "linear":
        return times(score.joined.weight, s + h)[0]
    if name == "concat":
        inside = times(score.joined.weight, s + h)
    else:
        of_source = zip(
            times(score.of_source.weight, h), score.of_source.bias.tolist(), strict=True
        )
        of_state = times(score.of_state.weight, s)
        inside = [a + b + c for a, (b, c) in zip(of_state, of_source, strict=True)]
    return sum(v * math.tanh(x) for v, x in zip(score.v.weight[0].tolist(), inside, strict=True))


@pytest.mark.parametrize("name", ALIGNMENT_SCORES)
def test_scores_are_those_of_the_formula_and_hidden_words_get_nothing(name, states):
    score, (s, h) = made(name), states
    found = score(score.query_projection(s), score.prepare(h))
    assert found.shape == (B, Q, K)
    for b in range(B):
        for q in range(Q):
            for k in range(K):
                expected = by_hand(name, score, s[b, q], h[b, k])
                assert found[b, q, k].item() == pytest.approx(expected, abs=1e-12)
    attention = RecurrentAttention(made(name))
    mask = torch.ones(B, 1, K, dtype=torch.bool)
    mask[1, 0, 2:] = False
    looked = attention(s, EncodedSource(h, mask, attention.score.prepare(h), h[:, 0]))
    torch.testing.assert_close(looked.weights.sum(-1), torch.ones(B, Q, dtype=torch.float64))
    assert (looked.weights[1, :, 2:] == 0).all()
    expected = sum(looked.weights[:, :, k, None] * h[:, None, k] for k in range(K))
    torch.testing.assert_close(looked.context, expected)


def test_a_linear_score_gives_every_target_word_the_same_weights_and_an_additive_one_does_not(
    states,
):
    s, h = states
    mask = torch.ones(B, 1, K, dtype=torch.bool)
    for name in ("linear", "additive"):
        attention = RecurrentAttention(made(name))
        looked = attention(s, EncodedSource(h, mask, attention.score.prepare(h), h[:, 0]))
        apart = (looked.weights - looked.weights[:, :1]).abs().max().item()
        assert (apart < 1e-12) is (name == "linear")
        assert looked.scores.std(1).min() > 0.01  # the scores themselves differ by word


def test_a_query_that_may_see_nothing_gets_zeros(states):
    s, h = states
    attention = RecurrentAttention(made("additive"))
    mask = torch.zeros(B, 1, K, dtype=torch.bool)
    looked = attention(s, EncodedSource(h, mask, attention.score.prepare(h), h[:, 0]))
    assert (looked.context == 0).all()
