"""Attention and the blocks around it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.blocks import make_block
from tests.pairwise import pairwise
from tfm_core.layers import attention, fast
from tfm_core.layers.attention import MultiHeadAttention, attention_weights, fused_attention
from tfm_core.layers.blocks import tokens_at
from tfm_core.layers.fast import Stack, is_short, short_attention
from tfm_core.layers.masks import causal_mask, padding_mask, window_mask
from tfm_core.layers.relative import Alibi, Rotation, T5RelativeBias
from tfm_core.probe.capture import capture

pytestmark = pytest.mark.quick


B, H, Q, K, D = 2, 3, 5, 7, 11

D_MODEL = H * D


def copied(bias=True):
    """Ours and torch's multi-head attention with the same weights."""
    theirs = nn.MultiheadAttention(D_MODEL, H, batch_first=True, bias=bias)
    ours = MultiHeadAttention(D_MODEL, H, bias=bias)
    with torch.no_grad():
        ours.in_projection.weight.copy_(theirs.in_proj_weight)
        ours.out_projection.weight.copy_(theirs.out_proj.weight)
        if bias:
            for parameter in (theirs.in_proj_bias, theirs.out_proj.bias):
                parameter.normal_()
            ours.in_projection.bias.copy_(theirs.in_proj_bias)
            ours.out_projection.bias.copy_(theirs.out_proj.bias)
    return ours, theirs


def test_equals_torch_multihead_attention_with_as_many_parameters():
    for bias in [True, False]:
        for is_cross in [True, False]:
            for is_watched in [True, False]:
                ours, theirs = copied(bias)
                x = torch.randn(B, Q, D_MODEL)
                memory = torch.randn(B, K, D_MODEL) if is_cross else x
                keep = torch.rand(B, memory.size(1)) > 0.3
                keep[:, 0] = True
                expected, weights = theirs(
                    x, memory, memory, key_padding_mask=~keep, average_attn_weights=False
                )
                arguments = (x, memory) if is_cross else (x,)
                if is_watched:
                    with capture(ours) as cache:
                        out = ours(*arguments, mask=keep[:, None, None, :])
                    torch.testing.assert_close(cache[".weights"], weights, atol=1e-6, rtol=1e-5)
                else:
                    out = ours(*arguments, mask=keep[:, None, None, :])
                torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    for n_heads in [1, 2, 4, 8]:
        attention = MultiHeadAttention(512, n_heads)
        assert sum(p.numel() for p in attention.parameters()) == 1_050_624
    with pytest.raises(ValueError, match="n_heads 3 does not divide d_model 32"):
        MultiHeadAttention(32, 3)
    with pytest.raises(ValueError, match="n_kv_heads 4 does not divide n_heads 6"):
        MultiHeadAttention(42, 6, n_kv_heads=4)


def test_masks_combine_and_masked_weights_are_exactly_zero():
    mask = torch.rand(B, 1, Q, K) > 0.4
    mask[..., 0] = True
    weights = attention_weights(torch.randn(B, H, Q, D), torch.randn(B, H, K, D), mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, Q))
    assert (weights[~mask.expand_as(weights)] == 0).all()
    ids = torch.tensor([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    mask = padding_mask(ids, 0) & causal_mask(5) & window_mask(5, 1)
    assert mask.shape == (2, 1, 5, 5)
    for b in range(2):
        for q in range(5):
            for k in range(5):
                allowed = bool(ids[b, k]) and k <= q and q - k <= 1
                assert mask[b, 0, q, k].item() == allowed


def test_a_query_without_keys_gets_zeros_and_a_sink_takes_all():
    for has_bias in [True, False]:
        q, k, v = torch.randn(B, H, Q, D), torch.randn(B, H, K, D), torch.randn(B, H, K, D)
        mask = torch.ones(B, 1, Q, K, dtype=torch.bool)
        mask[0, :, 2] = False
        bias = torch.randn(H, Q, K) if has_bias else None
        weights = attention_weights(q, k, mask, bias)
        fused = fused_attention(q, k, v, mask, bias)
        assert (weights[0, :, 2] == 0).all()
        assert (fused[0, :, 2] == 0).all()
        torch.testing.assert_close(weights @ v, fused, atol=1e-5, rtol=1e-5)
    q = torch.randn(B, H, Q, D, requires_grad=True)
    mask = torch.ones(Q, Q, dtype=torch.bool)
    mask[1] = False
    for out in (fused_attention(q, q, q, mask), attention_weights(q, q, mask) @ q):
        (grad,) = torch.autograd.grad(out.square().sum(), q)
        assert grad.isfinite().all()
    layer = MultiHeadAttention(12, 3, sink="learned", bias=False).eval()
    out = layer(torch.randn(2, 5, 12), mask=torch.zeros(5, 5, dtype=torch.bool))
    assert out.eq(0).all()
    layer = MultiHeadAttention(12, 3, sink="learned").eval()
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    expected = layer(x, mask=mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(x, mask=mask)
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_masks_do_not_overflow(dtype):
    q = torch.randn(B, H, Q, D, dtype=dtype)
    weights = attention_weights(q, q, causal_mask(Q))
    assert weights.isfinite().all()
    assert weights[..., 0, 1:].eq(0).all()


def test_rotary_scores_depend_on_the_offset_also_at_given_positions():
    q, k = torch.randn(1, 1, 1, 12), torch.randn(1, 1, 1, 12)
    qs, ks, bias = Rotation(12)(q.expand(1, 1, 17, 12), k.expand(1, 1, 17, 12))
    assert bias is None
    scores = (qs @ ks.mT)[0, 0]
    for offset in range(-16, 17):
        diagonal = scores.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)
    x, at = torch.randn(2, 3, 7, 6), torch.tensor([[6, 2, 3], [1, 4, 0]])
    turn = Rotation(6)
    rows = at[:, None, :, None].expand(-1, 3, -1, 6)
    torch.testing.assert_close(turn(x.gather(2, rows), x, at)[0], turn(x, x)[0].gather(2, rows))


@pytest.mark.parametrize(
    ("kind", "within"), [(torch.float64, 1e-6), (torch.float32, 1e-6), (torch.bfloat16, 0.02)]
)
def test_rotary_positions_turn_each_pair_of_dimensions_by_its_own_angle(kind, within):
    x = torch.randn(2, 3, 7, 6).to(kind)
    turned, also_turned, _ = Rotation(6)(x, x)
    assert turned.dtype == kind
    assert torch.equal(turned, also_turned)
    for position in range(7):
        for i in range(3):
            angle = position * 10000.0 ** (-2 * i / 6)
            sin, cos = math.sin(angle), math.cos(angle)
            even, odd = x[:, :, position, 2 * i].double(), x[:, :, position, 2 * i + 1].double()
            pair = turned[:, :, position, 2 * i : 2 * i + 2].double()
            expected = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
            torch.testing.assert_close(pair, expected, atol=within, rtol=within)


@pytest.mark.parametrize("relative", [Rotation(6), Alibi(3), T5RelativeBias(3, 6, is_causal=False)])
def test_relative_positions_run_where_torch_compiles(relative):
    torch.compiler.reset()
    x = torch.randn(2, 3, 7, 6)
    compiled = torch.compile(relative, backend="eager", fullgraph=True)
    for kept in (compiled(x, x), compiled(x[:, :, :5], x[:, :, :5]), compiled(x, x)):
        length = kept[0].size(-2)
        for ours, expected in zip(kept, relative(x[:, :, :length], x[:, :, :length]), strict=True):
            assert (ours is None) == (expected is None)
            if ours is not None:
                torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("relative", [Rotation(6), Alibi(3), T5RelativeBias(3, 6, is_causal=False)])
def test_what_was_kept_while_a_model_answered_can_be_trained_with(relative):
    x = torch.randn(2, 3, 7, 6, requires_grad=True)
    with torch.inference_mode():
        relative(x, x)
    q, _, bias = relative(x, x)
    (q if bias is None else q + bias[..., :6]).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3])
def test_groups_of_heads_share_keys_and_values_as_torchs_kernel_has_it(n_kv_heads):
    torch.manual_seed(0)
    layer = MultiHeadAttention(42, 6, n_kv_heads=n_kv_heads).eval()
    x, memory, mask = torch.randn(2, 5, 42), torch.randn(2, 7, 42), causal_mask(5)
    for own, keys, allowed in ((layer(x, mask=mask), x, mask), (layer(x, memory), memory, None)):
        weights = layer.in_projection.weight.split([42, 7 * n_kv_heads, 7 * n_kv_heads])
        q, k, v = (
            F.linear(read, weight).view(2, -1, len(weight) // 7, 7).transpose(1, 2)
            for read, weight in zip((x, keys, keys), weights, strict=True)
        )
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
        expected = layer.out_projection(heads.transpose(1, 2).flatten(2))
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-6)


def test_groups_with_the_same_keys_and_values_are_one_whole_attention():
    torch.manual_seed(0)
    grouped = MultiHeadAttention(42, 6, n_kv_heads=2)
    whole = MultiHeadAttention(42, 6)
    with torch.no_grad():
        for one, other in zip(
            whole.in_projection.parameters(), grouped.in_projection.parameters(), strict=True
        ):
            one.copy_(grouped.by_head(other))
        whole.out_projection.load_state_dict(grouped.out_projection.state_dict())
    x = torch.randn(2, 5, 42)
    torch.testing.assert_close(grouped(x), whole(x), rtol=1e-5, atol=1e-6)
    assert grouped.in_projection.weight.shape == (42 + 2 * 14, 42)


@pytest.mark.parametrize("n_kv_heads", [2, 6])
def test_queries_and_keys_are_normed_by_head_as_torch_norms_them(n_kv_heads):
    torch.manual_seed(0)
    layer = MultiHeadAttention(42, 6, n_kv_heads=n_kv_heads, qk_norm_eps=0.03).eval()
    with torch.no_grad():
        layer.query_norm.weight.normal_()
        layer.key_norm.weight.normal_()
    x, memory, mask = torch.randn(2, 5, 42), torch.randn(2, 7, 42), causal_mask(5)
    gains = (layer.query_norm.weight, layer.key_norm.weight)
    for own, keys, allowed in ((layer(x, mask=mask), x, mask), (layer(x, memory), memory, None)):
        weights = layer.in_projection.weight.split(layer.widths)
        q, k, v = (
            F.linear(read, weight).view(2, -1, len(weight) // 7, 7).transpose(1, 2)
            for read, weight in zip((x, keys, keys), weights, strict=True)
        )
        q, k = (F.rms_norm(one, (7,), gain, 0.03) for one, gain in zip((q, k), gains, strict=True))
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
        expected = layer.out_projection(heads.transpose(1, 2).flatten(2))
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-6)


def test_normed_scores_do_not_grow_with_the_weights():
    torch.manual_seed(0)
    plain, normed = (MultiHeadAttention(42, 6, qk_norm_eps=eps).eval() for eps in (None, 1e-6))
    x, largest = torch.randn(2, 5, 42), {}
    for layer in (plain, normed):
        for factor in (1, 100):
            with torch.no_grad():
                layer.in_projection.weight[:84] *= factor
            with capture(layer) as cache:
                layer(x)
            largest[layer, factor] = float(cache[".scores"].abs().max())
    assert largest[plain, 100] > 1000 * largest[plain, 1]
    assert largest[normed, 100] == pytest.approx(largest[normed, 1], rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "rates"),
    [  # inv_freq of LlamaRotaryEmbedding in Transformers 4.57, for d_head 16
        (
            {"rope_theta": 500.0},
            [
                1.0,
                0.4598633,
                0.2114742,
                0.09724925,
                0.04472136,
                0.02056571,
                0.009457416,
                0.004349119,
            ],
        ),
        (
            {"rope_scaling": "linear", "rope_factor": 4.0},
            [0.25, 0.07905694, 0.025, 0.007905695, 0.0025, 0.0007905695, 0.00025, 7.905695e-05],
        ),
        (
            {
                "rope_theta": 5e5,
                "rope_scaling": "llama3",
                "rope_factor": 8.0,
                "rope_original_len": 128,
            },
            [
                1.0,
                0.1911265,
                0.004700754,
                0.0009115831,
                0.0001767767,
                3.428102e-05,
                6.64787e-06,
                1.289173e-06,
            ],
        ),
        (
            {
                "rope_theta": 5e5,
                "rope_scaling": "llama3",
                "rope_factor": 32.0,
                "rope_original_len": 512,
            },
            [
                1.0,
                0.1939228,
                0.02624464,
                0.0002278958,
                4.419417e-05,
                8.570256e-06,
                1.661967e-06,
                3.222933e-07,
            ],
        ),
    ],
)
def test_pairs_turn_as_fast_as_those_of_transformers(settings, rates):
    ones = torch.ones(1, 1, 2, 16, dtype=torch.float64)
    turned, _k, _bias = Rotation(16, **settings)(ones, ones)
    even, odd = turned[0, 0, 1].view(-1, 2).T  # 1 + i, turned by the rate
    found = torch.atan2(odd, even) - math.pi / 4
    torch.testing.assert_close(found, torch.tensor(rates).double(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("has_mask", [True, False])
@pytest.mark.parametrize("kind", ["zero", "learned"])
def test_a_sink_is_a_term_more_in_the_softmax(kind, has_mask):
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 3, sink=kind).eval()
    logits = torch.zeros(3)
    if layer.sink is not None:
        logits = layer.sink.logits.data.normal_()
    x, mask = torch.randn(2, 5, 12), causal_mask(5) if has_mask else None
    with capture(layer) as cache:
        watched = layer(x, mask=mask)
    torch.testing.assert_close(layer(x, mask=mask), watched, atol=1e-6, rtol=1e-5)
    powers = cache[".scores"].exp() if mask is None else cache[".scores"].exp() * mask
    total = powers.sum(-1, keepdim=True) + logits.exp()[:, None, None]
    torch.testing.assert_close(cache[".weights"], powers / total)
    assert (cache[".weights"].sum(-1) < 1).all()


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
    layer = fast.MultiHeadAttention(H * D, H)
    layer.divisor = divisor or layer.divisor
    x, mask = torch.randn(n, Q, H * D), causal_mask(Q)
    with capture(layer):
        expected = layer(x, mask=mask)
    with monkeypatch.context() as patched:
        patched.delattr(attention, "fused_attention")  # so that nothing else can have answered
        actual = layer(x, mask=mask)
    torch.testing.assert_close(actual, expected)


N, T, WIDTH, HEADS = 2, 7, 12, 3

IDS = torch.tensor([[5, 6, 7, 8, 9, 5, 6], [5, 6, 7, 8, 0, 0, 0]])

RELATIVE = {
    "none": None,
    "rotary": Rotation(WIDTH // HEADS),
    "alibi": Alibi(HEADS),
    "t5-bias": T5RelativeBias(HEADS, WIDTH, is_causal=True),
}

MASKS = {
    "none": None,
    "padding": padding_mask(IDS, 0),
    "causal": padding_mask(IDS, 0) & causal_mask(T, IDS.device),
}

ASKED = {
    "the first": torch.tensor([[0], [0]]),
    "the first two": torch.tensor([[0, 1], [0, 1]]),
    "others in each sequence": torch.tensor([[6, 2, 3], [1, 4, 0]]),
}


@pytest.mark.parametrize(
    "settings",
    pairwise(asked=ASKED, relative=RELATIVE, mask=MASKS, norm_first=[True, False]),
    ids=lambda settings: " ".join(map(str, settings.values())),
)
def test_a_stack_asked_at_a_few_positions_says_there_what_it_says(settings):
    query_positions, mask = ASKED[settings["asked"]], MASKS[settings["mask"]]
    relative, norm_first = RELATIVE[settings["relative"]], settings["norm_first"]
    torch.manual_seed(0)
    blocks = [make_block(WIDTH, HEADS, 11, norm_first=norm_first) for _ in range(2)]
    stack = Stack(blocks, torch.nn.LayerNorm(WIDTH), relative=relative)
    x = torch.randn(N, T, WIDTH)
    gradients = []
    for out in (
        tokens_at(stack(x, mask=mask), query_positions),
        stack.at(query_positions, x, mask=mask),
    ):
        stack.zero_grad()
        assert out.shape == (N, query_positions.size(1), WIDTH)
        out.square().sum().backward()
        gradients.append([out, *(p.grad for p in stack.parameters())])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
