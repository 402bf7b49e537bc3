"""Texts with nothing in them: an empty source gets a sentence, padding alone finite numbers."""

import pytest
import torch

from tests.models.variants import SRC_WORDS, text_batch, text_config, text_model
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.models.build import build_text
from tfm_core.models.ends import mean_of_tokens

pytestmark = pytest.mark.quick

NEEDS_A_SOURCE = [
    ("encoder-decoder", {}),
    *[
        ("recurrent", {"cell": cell, "attention": attention})
        for cell in ("gru", "lstm")
        for attention in ("additive", "dot")
    ],
]


@pytest.mark.parametrize(("family", "settings"), NEEDS_A_SOURCE)
def test_an_empty_source_is_refused_in_a_sentence(family, settings):
    _src, tgt_in = text_batch()
    with pytest.raises(ValueError, match=r"source is empty.*at least one token"):
        text_model(family, **settings)(torch.empty(2, 0, dtype=torch.int64), tgt_in)


@pytest.mark.parametrize("family", ["encoder-only", "decoder-only"])
def test_an_empty_source_is_read_by_models_that_need_none(family):
    _src, tgt_in = text_batch()
    found = text_model(family).eval()(torch.empty(2, 0, dtype=torch.int64), tgt_in)
    assert found.shape[:2] == tgt_in.shape
    assert found[0].isfinite().all()


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only", "recurrent"])
def test_a_source_of_padding_alone_gives_finite_answers_and_gradients(family):
    src, tgt_in = text_batch()
    src[1] = 0
    model = text_model(family)
    found = model(src, tgt_in)
    assert found.isfinite().all()
    found.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_text_of_padding_alone_is_pooled_to_finite_answers_and_gradients(pooling):
    src, tgt_in = text_batch()
    shape = TextShape(SRC_WORDS, 7, 0, head=pooling, n_labels=3)
    model = build_text(text_config("encoder-only", pooling=pooling), shape).eval()
    whole = model(src, tgt_in)
    src[1] = 0
    found = model(src, tgt_in)
    torch.testing.assert_close(found[0], whole[0])
    assert found.isfinite().all()
    found.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_the_mean_of_padding_alone_is_zero():
    x, keep = torch.randn(2, 3, 5), torch.tensor([[True, True, False], [False] * 3])
    found = mean_of_tokens(x, keep)
    torch.testing.assert_close(found[0, 0], x[0, :2].mean(0))
    assert found[1].eq(0).all()
