"""Blocks and stacks: what need not be computed is not, and nothing else changes."""

import pytest
import torch

from tfm_core.layers.blocks import Block, Stack, tokens_at
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


READ = {
    "the first": torch.tensor([[0], [0]]),
    "the first two": torch.tensor([[0, 1], [0, 1]]),
    "others in each sequence": torch.tensor([[6, 2, 3], [1, 4, 0]]),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("relative", RELATIVE)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_stack_of_which_few_tokens_are_read_says_the_same_there(relative, mask, norm_first, read):
    torch.manual_seed(0)
    blocks = [Block(D, HEADS, 11, norm_first=norm_first) for _ in range(2)]
    stack = Stack(blocks, torch.nn.LayerNorm(D), relative=RELATIVE[relative])
    x = torch.randn(B, T, D)
    gradients = []
    for places in (None, read):
        stack.zero_grad()
        out = stack(x, mask=MASKS[mask], read=places)
        assert out.size(1) == (T if places is None else read.size(1))
        out = tokens_at(out, read) if places is None else out
        out.square().sum().backward()
        gradients.append([out, *(p.grad for p in stack.parameters())])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
