"""The quick layers that builders take, against the plain ones, in random models."""

import copy

import pytest
import torch
from hypothesis import given

from tests.anatomy.configurations import models
from tests.anatomy.test_anatomy import inputs_of
from tfm_core.layers import blocks, fast
from tfm_core.layers.fast import LSTM
from tfm_core.models.build import build_model

BATCH = 3


def made_plain(model):
    """Make every quick layer of a model the plain one that it extends."""
    for module in model.modules():
        kind = type(module)
        if kind.__module__ == "tfm_core.layers.fast":
            assert kind.__name__ == kind.__base__.__name__
            module.__class__ = kind.__base__
    return model


def answers(model, *inputs):
    """Logits, and the gradient of every parameter that has one."""
    model.zero_grad()
    logits = model(*inputs)
    (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum().backward()
    return [logits, *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.fixture(autouse=True)
def _few_scores_count_as_many(monkeypatch):
    monkeypatch.setattr(fast, "_FEW", 0)


@given(models())
def test_a_model_of_plain_layers_gives_the_same_logits_and_gradients(chosen):
    torch.manual_seed(1)
    config, shape = chosen
    # fewer tokens in the last block take fewer random numbers
    model, inputs = build_model(config.replace(dropout=0.0), shape), inputs_of(shape, BATCH, "cpu")
    plain = made_plain(copy.deepcopy(model))
    assert str(plain) == str(model)
    for trains in (True, False):
        found, expected = (answers(each.train(trains), *inputs) for each in (model, plain))
        for one, other in zip(found, expected, strict=True):
            largest = max(
                1.0, float(other.detach().abs().max())
            )  # without norms gradients can be any size
            torch.testing.assert_close(one, other, atol=1e-3 * largest, rtol=0.0)


@pytest.mark.parametrize("kind", [fast.MultiHeadAttention, fast.Stack])
def test_a_built_model_has_the_quick_layers(kind):
    assert any(type(module) is kind for module in built("encoder-only").modules())


def test_stems_and_cells_are_the_quick_ones():
    assert type(built("vit", stem="conv").stem) is fast.ConvStem
    assert type(built("recurrent", cell="lstm").encoder.layers[0].onward) is LSTM


def built(family, **chosen):
    from tests.models.variants import text_model, vit_model

    return vit_model(**chosen) if family == "vit" else text_model(family, **chosen)


def test_the_last_block_of_a_quick_stack_computes_only_what_is_read(monkeypatch):
    model = built("encoder-only", n_layers=2).eval()
    widths = []
    for block in model.encoder.layers:
        block.feed_forward.register_forward_hook(
            lambda _m, args, _o: widths.append(args[0].size(1))
        )
    x, read = torch.randn(2, 7, 12), torch.tensor([[6, 2, 3], [1, 4, 0]])
    quick = model.encoder.at(read, x)
    assert widths == [7, 3]
    torch.testing.assert_close(quick, blocks.Stack.at(model.encoder, read, x))
