"""Blocks and stacks: what need not be computed is not, and nothing else changes."""

import pytest
import torch

from tests.layers.blocks import make_block
from tests.pairwise import pairwise
from tfm_core.layers.blocks import tokens_at
from tfm_core.layers.fast import Stack
from tfm_core.layers.masks import causal_mask, padding_mask
from tfm_core.layers.relative import Alibi, Rotation, T5RelativeBias

pytestmark = pytest.mark.quick

B, T, D, HEADS = 2, 7, 12, 3
IDS = torch.tensor([[5, 6, 7, 8, 9, 5, 6], [5, 6, 7, 8, 0, 0, 0]])
RELATIVE = {
    "none": None,
    "rotary": Rotation(D // HEADS),
    "alibi": Alibi(HEADS),
    "t5-bias": T5RelativeBias(HEADS, D, is_causal=True),
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
    blocks = [make_block(D, HEADS, 11, norm_first=norm_first) for _ in range(2)]
    stack = Stack(blocks, torch.nn.LayerNorm(D), relative=relative)
    x = torch.randn(B, T, D)
    gradients = []
    for out in (
        tokens_at(stack(x, mask=mask), query_positions),
        stack.at(query_positions, x, mask=mask),
    ):
        stack.zero_grad()
        assert out.shape == (B, query_positions.size(1), D)
        out.square().sum().backward()
        gradients.append([out, *(p.grad for p in stack.parameters())])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
