"""A model without a padding token hides no token: GPT-2's "!" is its token 0."""

from dataclasses import replace

import pytest
import torch

from tests.models.variants import SMALL
from tfm_core.choices.config.shape import TextShape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.layers.masks import causal_mask
from tfm_core.models.build import build_model

pytestmark = pytest.mark.quick

WORDS = 19


def small(pad_id):
    torch.manual_seed(0)
    known = ARCHITECTURES["gpt2-small"]
    shape = replace(known.shape, src_vocabulary=WORDS, tgt_vocabulary=WORDS, pad_id=pad_id)
    return build_model(known.model.replace(**SMALL, dropout=0.0), shape).eval()


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name.startswith("gpt2")])
def test_gpt2_has_no_padding_token(name):
    assert ARCHITECTURES[name].shape.pad_id is None
    assert TextShape(WORDS, WORDS).pad_id == 0


@torch.no_grad()
def test_logits_with_token_0_are_those_without_any_padding_mask():
    model = small(None)
    ids = torch.randint(1, WORDS, (2, 7))
    ids[0, 2] = ids[1, 0] = 0
    x = model.positions(model.tgt_embedding(ids))
    expected = model.output(model.decoder(x, mask=causal_mask(7)))
    torch.testing.assert_close(model(ids[:, :0], ids), expected, atol=1e-6, rtol=1e-5)
    hidden = small(0)(ids[:, :0], ids)
    assert (hidden - expected)[0, 2:].abs().max() > 0.01  # where 0 is padding it is not read
