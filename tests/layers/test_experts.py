"""Layers of experts, and pictures cut into patches."""

import math

import pytest
import torch
import torch.nn.functional as F

from tfm_core.choices.variants.stems import can_halve
from tfm_core.layers.experts import MixtureOfExperts, load_balance, routing, top_shares
from tfm_core.layers.fast import ConvStem
from tfm_core.layers.feed_forward import FeedForward
from tfm_core.layers.patches import ConvStack
from tfm_core.probe.capture import capture

D, FF, B, T = 7, 11, 3, 5


def mixture(n_experts=5, top_k=2, *, activation="gelu", bias=True):
    torch.manual_seed(3)

    def make():
        return FeedForward(D, FF, activation=activation, bias=bias)

    return MixtureOfExperts(D, n_experts, make, top_k=top_k)


def tokens():
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(1))


def looped(layer, x):
    """Every token by itself: the experts with the largest logits, by a softmax over them alone."""
    out = torch.zeros_like(x)
    for place in [(b, t) for b in range(B) for t in range(T)]:
        token = x[place]
        logits = layer.router.weight @ token
        best = sorted(range(len(logits)), key=lambda n: -float(logits[n]))[: layer.top_k]
        powers = {n: math.exp(float(logits[n])) for n in best}
        over = powers if layer.top_k > 1 else [math.exp(float(one)) for one in logits]
        total = sum(over.values() if isinstance(over, dict) else over)
        for n, power in powers.items():
            out[place] += power / total * layer.experts[n](token)
    return out


@pytest.mark.parametrize(("n_experts", "top_k"), [(5, 2), (3, 3), (5, 1), (1, 1), (13, 2)])
def test_it_is_a_loop_over_tokens(n_experts, top_k):
    layer, x = mixture(n_experts, top_k), tokens()
    with torch.no_grad():
        torch.testing.assert_close(layer(x), looped(layer, x), atol=1e-6, rtol=1e-5)


# what MixtralSparseMoeBlock of Transformers 5.24 gives on waves, and its load_balancing_loss_func
MIXTRAL = [
    [4.377588748931885, 3.023125648498535, -8.01750373840332],
    [2.6243433952331543, -2.2724719047546387, 0.11176538467407227],
    [-8.97529411315918, 8.161645889282227, -0.8515291213989258],
]

MIXTRAL_BALANCE = 2.4238970279693604  # it counts each of the two choices


def wave(*shape, phase):
    return torch.sin(torch.arange(math.prod(shape)) * 1.7 + phase).view(shape)


def test_it_is_mixtrals():
    layer = MixtureOfExperts(3, 4, lambda: FeedForward(3, 5, activation="swiglu", bias=False))
    wide, narrow = wave(4, 10, 3, phase=0.2), wave(4, 3, 5, phase=0.3)
    with torch.no_grad():
        layer.router.weight.copy_(wave(4, 3, phase=0.1))
        for n, expert in enumerate(layer.experts):
            expert.gate.weight.copy_(wide[n, :5])
            expert.up.weight.copy_(wide[n, 5:])
            expert.down.weight.copy_(narrow[n])
        x = 2 * wave(1, 3, 3, phase=0.9)
        torch.testing.assert_close(layer(x)[0], torch.tensor(MIXTRAL), atol=1e-5, rtol=1e-5)
        balance = load_balance(layer.router(x), 2)
    assert float(balance) == pytest.approx(MIXTRAL_BALANCE / 2, rel=1e-6)


@pytest.mark.parametrize("top_k", [1, 2])
def test_where_all_experts_map_all_tokens_nothing_changes_but_the_time(top_k):
    layer, x = mixture(top_k=top_k), tokens()
    shares, chosen = top_shares(layer.router(x), top_k)
    gradients = []
    for way in (layer._mixed, layer._mixed_by_all):
        out = way(x, shares, chosen)
        gradients.append(
            [
                out,
                *torch.autograd.grad(
                    out.square().sum(), layer.experts.parameters(), retain_graph=True
                ),
            ]
        )
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-5)


def test_an_expert_without_a_token_has_no_gradient_and_a_token_goes_its_way():
    layer, x = mixture(), tokens().abs()
    with torch.no_grad():
        layer.router.weight[4] = -100.0
    layer(x).sum().backward()
    assert all(one.grad is not None and not one.grad.any() for one in layer.experts[4].parameters())
    assert layer.router.weight.grad.any()
    layer, x = mixture().eval(), tokens()
    with torch.no_grad():
        together, alone = layer(x), layer(x[1:2, 3:4])
    torch.testing.assert_close(together[1:2, 3:4], alone, atol=1e-6, rtol=1e-5)


def test_shares_add_up_and_what_is_recorded_is_where_tokens_went():
    logits = torch.randn(B, T, 5, generator=torch.Generator().manual_seed(2))
    shares, chosen = top_shares(logits, 3)
    torch.testing.assert_close(shares, logits.gather(-1, chosen).softmax(-1))
    shares, chosen = top_shares(logits, 1)
    torch.testing.assert_close(shares, logits.softmax(-1).gather(-1, chosen))
    alike = 50.0 * torch.eye(5)[None]
    assert float(load_balance(alike, 1)) == pytest.approx(1)
    assert float(load_balance(alike[:, :1].expand(1, 5, 5), 1)) == pytest.approx(5)
    logits = torch.zeros(1, 7, 5, requires_grad=True)
    skewed = logits + torch.tensor([2.0, 1.0, 0.0, 0.0, 0.0])
    load_balance(skewed, 2).backward()
    assert (logits.grad[..., 0] > 0).all()  # descending takes from the one that gets most
    assert (logits.grad[..., 2:] < 0).all()
    layer, x = mixture(), tokens()
    with capture(torch.nn.Sequential(layer)) as cache, routing() as routed:
        out = layer(x)
    gates = cache["0.gates"]
    ((logits, top_k),) = routed
    assert gates.shape == logits.shape == (B, T, 5)
    assert top_k == 2
    assert ((gates > 0).sum(-1) == 2).all()
    torch.testing.assert_close(gates.sum(-1), torch.ones(B, T))
    made = torch.stack([expert(x) for expert in layer.experts], -2)
    torch.testing.assert_close((made * gates[..., None]).sum(-2), out, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match="top_k 6"):
        mixture(5, 6)


@pytest.mark.parametrize(
    ("channels", "side", "patch_size"), [(1, 28, 7), (1, 28, 4), (3, 32, 4), (2, 6, 1), (1, 6, 6)]
)
def test_the_stem_that_trains_computes_what_the_convolution_does(channels, side, patch_size):
    torch.manual_seed(0)
    stem = ConvStem(channels, patch_size, 5).double()
    images = torch.randn(3, channels, side, side, dtype=torch.float64, requires_grad=True)
    found = []
    for trains in (True, False):
        stem.train(trains)
        stem.zero_grad()
        images.grad = None
        out = stem(images)
        (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
        found.append([out, images.grad, *(p.grad for p in stem.parameters())])
    assert found[0][0].shape == (3, (side // patch_size) ** 2, 5)
    for quick, plain in zip(*found, strict=True):
        torch.testing.assert_close(quick, plain, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("side", "patch_size", "widths"), [(28, 7, [5, 10, 20]), (28, 2, [20]), (49, 7, [5, 10, 20])]
)
def test_a_stack_halves_a_picture_until_each_patch_is_one_place(side, patch_size, widths):
    torch.manual_seed(0)
    stem = ConvStack(3, patch_size, 20).double()
    assert [convolution.out_channels for convolution in stem.convolutions] == widths
    images = torch.randn(2, 3, side, side, dtype=torch.float64)
    seen = images
    for convolution in stem.convolutions:
        windows = F.unfold(seen, 3, padding=1, stride=2).mT  # (B, places, channels * 9)
        seen = F.gelu(F.linear(windows, convolution.weight.flatten(1), convolution.bias)).mT
        seen = seen.unflatten(2, (round(seen.size(2) ** 0.5), -1))
    expected = stem.projection(seen.flatten(2).mT)
    assert expected.shape == (2, (side // patch_size) ** 2, 20)
    torch.testing.assert_close(stem(images), expected, rtol=1e-6, atol=1e-9)


def test_a_patch_of_a_stack_knows_what_surrounds_it_if_it_can_be_halved():
    """Three 3x3 convolutions of stride 2 see 15 pixels across, from 7 before the middle one."""
    stem = ConvStack(1, 7, 8)
    images = torch.randn(1, 1, 28, 28, requires_grad=True)
    stem(images)[0, 5].sum().backward()  # row 1, column 1: its window begins at pixel 8 - 7
    reached = images.grad[0, 0].abs().sum(0).nonzero().flatten()
    assert (reached.min(), reached.max()) == (1, 15)
    assert [n for n in range(1, 29) if can_halve(28, n)] == [2, 4, 7, 14, 28]
    with pytest.raises(ValueError, match="patch_size 1 leaves none"):
        ConvStack(1, 1, 8)
