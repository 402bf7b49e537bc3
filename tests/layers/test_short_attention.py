"""Attention over few keys: what the explicit formula says, forwards and backwards."""

import pytest
import torch

from tfm_core.layers import attention, fast
from tfm_core.layers.attention import attention_weights
from tfm_core.layers.fast import MultiHeadAttention, is_short, short_attention
from tfm_core.layers.masks import causal_mask
from tfm_core.probe.capture import capture

pytestmark = pytest.mark.quick

B, H, Q, K, D = 2, 3, 5, 7, 11
SCALE = D**-0.5


def packed(length):
    """Heads as a projection leaves them: not one behind the other in memory."""
    return torch.randn(B, length, H, D).transpose(1, 2).requires_grad_()


def masks():
    nothing_for_one = torch.rand(B, 1, Q, K) > 0.4
    nothing_for_one[1, 0, 2] = False
    return {
        "none": None,
        "padding": (torch.arange(K) < torch.tensor([[4], [7]]))[:, None, None, :],
        "one for all": torch.ones(Q, K, dtype=torch.bool).tril(),
        "a row of nothing": nothing_for_one,
    }


@pytest.mark.parametrize("mask", masks().values(), ids=masks().keys())
@pytest.mark.parametrize("size", [1.0, 40.0], ids=["safe", "too large for an exponential"])
def test_answers_and_gradients_are_those_of_the_formula(mask, size):
    q, k, v = packed(Q), packed(K), packed(K)
    given = torch.randn(B, H, Q, D)

    def answers(attend):
        out = attend(size * q, k, v)
        return out, *torch.autograd.grad(out, (q, k, v), given)

    expected = answers(lambda q, k, v: attention_weights(q, k, mask) @ v)
    actual = answers(lambda q, k, v: short_attention(q, k, v, mask, SCALE))
    for theirs, ours in zip(expected, actual, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-6 * size, rtol=2e-5)


def test_a_large_masked_score_hides_nothing_and_long_rows_are_the_kernels():
    q, k = torch.ones(1, 1, 1, 1), torch.tensor([0.5, 300.0]).view(1, 1, 2, 1)
    mask = torch.tensor([True, False])
    out = short_attention(q, k, torch.tensor([3.0, 5.0]).view_as(k), mask, 1.0)
    assert out.item() == 3.0
    q = torch.full((1, 1, 2, 3), torch.nan)
    assert short_attention(q, q, q, None, 1.0).isnan().all()
    many = torch.empty(1 + fast._FEW, 1, 1, D)
    assert is_short(many, many)
    assert not is_short(many, many.expand(-1, -1, 16, -1))
    assert not is_short(many[:3], many[:3])
    assert not is_short(many.bfloat16(), many.bfloat16())
    assert not is_short(many.to("meta"), many.to("meta"))


@pytest.mark.parametrize("divisor", [None, 2.0])
def test_a_batch_of_short_sequences_takes_it_and_a_watched_one_sees_the_same(divisor, monkeypatch):
    n = 1 + fast._FEW // (H * Q * Q)
    layer = MultiHeadAttention(H * D, H)
    layer.divisor = divisor or layer.divisor
    x, mask = torch.randn(n, Q, H * D), causal_mask(Q)
    with capture(layer):
        expected = layer(x, mask=mask)
    with monkeypatch.context() as patched:
        patched.delattr(attention, "fused_attention")  # so that nothing else can have answered
        actual = layer(x, mask=mask)
    torch.testing.assert_close(actual, expected)
