"""Positions, and the layers that read one token after the other."""

import math

import pytest
import torch

from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES
from tfm_core.layers.positions import FixedPositions, LearnedPositions, sinusoidal, sinusoidal_2d
from tfm_core.layers.recurrent import EncodedSource, RecurrentAttention
from tfm_core.layers.relative import Alibi, T5RelativeBias, alibi_bias, alibi_slopes, bucket

pytestmark = pytest.mark.quick


def test_positions_tell_offsets_and_rows_from_columns():
    table = sinusoidal(101, 22).double()
    products = table @ table.T
    for offset in (0, 1, 13, 50):
        diagonal = products.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)
    table = sinusoidal(3, 14)
    assert (table[0, 0::2] == 0).all()
    assert (table[0, 1::2] == 1).all()
    table = sinusoidal(30, 16)
    for p, i in ((1, 0), (7, 3), (29, 7)):
        angle = p / 10000 ** (2 * i / 16)
        assert table[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
        assert table[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)
    table = sinusoidal_2d(5, 7, 12).view(5, 7, 12)
    assert (table[3, :, :6] == table[3, :1, :6]).all()
    assert (table[:, 4, 6:] == table[:1, 4, 6:]).all()
    assert len(table.flatten(0, 1).unique(dim=0)) == 35


def test_fixed_positions_grow_learned_ones_end_and_alibi_falls():
    positions = FixedPositions(5, lambda length: sinusoidal(length, 6))
    out = positions(torch.zeros(2, 11, 6))
    torch.testing.assert_close(out[0], sinusoidal(11, 6))
    with pytest.raises(ValueError, match="11 tokens, but the learned position table has 5 rows"):
        LearnedPositions(5, 6)(torch.zeros(2, 11, 6))
    torch.testing.assert_close(alibi_slopes(8), torch.tensor([2.0**-i for i in range(1, 9)]))
    assert len(alibi_slopes(13)) == 13
    bias = alibi_bias(3, 7)
    assert bias.shape == (3, 7, 7)
    assert (bias.diagonal(dim1=1, dim2=2) == 0).all()
    torch.testing.assert_close(bias[:, 0, 6], 6 * bias[:, 0, 1])


@pytest.mark.parametrize("length", [7, 4, 9])
def test_what_alibi_adds_is_of_the_length_that_is_asked(length):
    alibi, x = Alibi(3), torch.zeros(2, 3, length, 5)
    alibi(torch.zeros(2, 3, 7, 5), torch.zeros(2, 3, 7, 5))
    torch.testing.assert_close(alibi(x, x)[2], alibi_bias(3, length))
    at = torch.tensor([[3, 0], [1, 2]])
    expected = alibi_bias(3, length)[:, at].transpose(0, 1)
    torch.testing.assert_close(alibi(x[:, :, :2], x, at)[2], expected)


def bucket_by_counting(offset, is_causal):
    """T5's bucket in whole numbers: how many powers of the ratio a distance has reached."""
    n = 32 if is_causal else 16
    distance = max(0, -offset) if is_causal else abs(offset)
    first = 0 if is_causal or offset <= 0 else n
    exact = n // 2
    if distance < exact:
        return first + distance
    steps = n - exact  # distance >= exact * (128 / exact)^(k / steps), to the power of steps
    reached = [distance**steps * exact**k >= exact**steps * 128**k for k in range(1, steps)]
    return first + exact + sum(reached)


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_buckets_of_t5_are_whole_numbers_and_what_is_added_their_number(is_causal):
    offsets = torch.arange(-300, 301)
    expected = [bucket_by_counting(int(offset), is_causal) for offset in offsets]
    assert bucket(offsets, is_causal=is_causal).tolist() == expected
    assert set(expected) | ({16} if not is_causal else set()) == set(range(32))
    layer, x = T5RelativeBias(3, 12, is_causal=is_causal), torch.zeros(2, 3, 41, 5)
    bias = layer(x, x)[2]
    for query, key in ((0, 0), (0, 40), (40, 0), (7, 23), (23, 7)):
        expected = layer.table[bucket_by_counting(key - query, is_causal)]
        torch.testing.assert_close(bias[:, query, key], expected)
    bias.sum().backward()
    assert layer.table.grad.sum() == 3 * 41 * 41  # nothing else is trained


@pytest.mark.parametrize(
    ("make", "width"), [(lambda: sinusoidal(3, 5), 5), (lambda: sinusoidal_2d(2, 2, 6), 6)]
)
def test_widths_that_do_not_fit_are_said(make, width):
    with pytest.raises(ValueError, match=f"it is {width}"):
        make()


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
