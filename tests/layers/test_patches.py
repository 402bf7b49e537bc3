"""The convolutional stem: two ways to compute it, one result."""

import pytest
import torch

from tfm_core.layers.patches import ConvStem


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
