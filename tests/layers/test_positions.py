"""Positions: the properties the papers promise."""

import math

import pytest
import torch

from tfm_core.layers.positions import (
    FixedPositions,
    LearnedPositions,
    sinusoidal,
    sinusoidal_2d,
)
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
