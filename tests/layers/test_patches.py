"""Convolutional stems: one, which two ways compute with one result, and a stack of them."""

import pytest
import torch
import torch.nn.functional as F

from tfm_core.choices.variants.stems import can_halve
from tfm_core.layers.fast import ConvStem
from tfm_core.layers.patches import ConvStack


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
