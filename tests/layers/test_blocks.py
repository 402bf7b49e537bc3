"""Blocks and stacks: what need not be computed is not, and nothing else changes."""

import pytest
import torch

from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.masks import causal_mask, padding_mask
from tfm_core.layers.positions import Rotation, alibi_bias

B, T, D, HEADS = 2, 7, 12, 3
IDS = torch.tensor([[5, 6, 7, 8, 9, 5, 6], [5, 6, 7, 8, 0, 0, 0]])
RELATIVE = {
    "none": None,
    "rotary": lambda x: {"rotation": Rotation(x.size(1), D // HEADS, x)},
    "alibi": lambda x: {"bias": alibi_bias(HEADS, x.size(1), x)},
}
MASKS = {
    "none": None,
    "padding": padding_mask(IDS, 0),
    "causal": padding_mask(IDS, 0) & causal_mask(T, IDS.device),
}


@pytest.mark.parametrize("relative", RELATIVE)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_stack_of_which_few_tokens_are_read_says_the_same_there(relative, mask, norm_first):
    torch.manual_seed(0)
    blocks = [Block(D, HEADS, 11, norm_first=norm_first) for _ in range(2)]
    stack = Stack(blocks, torch.nn.LayerNorm(D), relative=RELATIVE[relative])
    x = torch.randn(B, T, D)
    gradients = []
    for n_read in (None, 2):
        stack.zero_grad()
        out = stack(x, mask=MASKS[mask], n_read=n_read)
        assert out.size(1) == (n_read or T)
        out[:, :2].square().sum().backward()
        gradients.append([out[:, :2], *(p.grad for p in stack.parameters())])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
