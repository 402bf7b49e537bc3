"""Capture: what is kept, and what is computed for it."""

from __future__ import annotations

import pytest
import torch

from tests.models.variants import text_batch, text_model
from tfm_core.layers import attention
from tfm_core.probe.capture import capture

ONE = "decoder.layers.1.cross_attention"


@pytest.fixture
def model():
    return text_model("encoder-decoder", n_encoder_layers=2, n_decoder_layers=3).eval()


@pytest.fixture
def computed(monkeypatch):
    """The shapes of the maps that are computed."""
    shapes = []

    def counted(*args, real=attention.masked_softmax):
        shapes.append(tuple(args[0].shape))
        return real(*args)

    monkeypatch.setattr(attention, "masked_softmax", counted)
    return shapes


def test_weights_are_computed_only_in_the_layers_that_are_asked_for(model, computed):
    inputs = text_batch()
    with capture(model, only={"weights", "mask"}) as everything:
        logits = model(*inputs)
    assert len(computed) == len(everything.of("weights")) == 2 + 2 * 3
    computed.clear()
    with capture(model, only={"weights", "mask"}, modules={ONE}) as cache:
        found = model(*inputs)
    assert computed == [tuple(cache[f"{ONE}.weights"].shape)]
    assert set(cache) == {f"{ONE}.weights", f"{ONE}.mask"}
    torch.testing.assert_close(found, logits)
    torch.testing.assert_close(cache[f"{ONE}.weights"], everything[f"{ONE}.weights"])


@pytest.mark.parametrize("only", [{"residual"}, {"hidden", "input"}, {"projected_key"}])
def test_no_weights_are_computed_where_nobody_keeps_them(model, computed, only):
    with capture(model, only=only) as cache:
        model(*text_batch())
    assert computed == []
    assert {name.rpartition(".")[2] for name in cache} == only


def test_everything_is_kept_where_nothing_is_said(model, computed):
    with capture(model) as cache:
        model(*text_batch())
    assert len(computed) == len(cache.of("weights")) == len(cache.of("scores"))
