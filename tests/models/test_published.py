"""GPT-2 and BERT compute what was published: against their arithmetic by torch's own layers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.models.test_parity import copy_block
from tfm_core.architectures import ARCHITECTURES
from tfm_core.models.build import build_model

SMALL = {"d_model": 33, "n_heads": 3, "d_ff": 29, "n_layers": 2, "dropout": 0.0, "max_len": 23}
WORDS, B, S, T = 19, 2, 7, 5


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def small(name):
    known = ARCHITECTURES[name]
    shape = type(known.shape)(
        WORDS, WORDS, one_vocabulary=True, output_bias=known.shape.output_bias,
        head=known.shape.head, n_segments=known.shape.n_segments,
        scale_embedding=known.shape.scale_embedding,
    )  # fmt: skip
    return build_model(known.model.replace(**SMALL), shape).eval()


def blocks(stack, *, norm_first):
    """Return torch's own blocks with weights that are copied into ours."""
    theirs = [
        nn.TransformerEncoderLayer(
            33, 3, 29, 0.0, "gelu", batch_first=True, norm_first=norm_first
        ).eval()
        for _ in stack.layers
    ]
    for ours, other in zip(stack.layers, theirs, strict=True):
        copy_block(ours, other)
    return theirs


@torch.no_grad()
def test_gpt2_adds_word_and_position_without_a_scale():
    model = small("gpt2-small")
    theirs = blocks(model.decoder, norm_first=True)
    src = torch.randint(4, WORDS, (B, S))
    tgt = torch.randint(4, WORDS, (B, T))
    ids = torch.cat([src, tgt], 1)
    words, places = model.src_embedding.table.weight, model.positions.table
    x = words[ids] + places[: S + T]
    causal = nn.Transformer.generate_square_subsequent_mask(S + T)
    for block in theirs:
        x = block(x, src_mask=causal, is_causal=True)
    norm = model.decoder.final_norm
    x = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-5)
    expected = (x @ words.T)[:, S:]
    torch.testing.assert_close(model(src, tgt), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_bert_adds_word_position_and_segment_then_normalises():
    model = small("bert-base")
    theirs = blocks(model.encoder, norm_first=False)
    src = torch.randint(4, WORDS, (B, S))
    src[1, 4:] = 0
    x = model.src_embedding.table.weight[src] + model.src_positions.table[:S]
    norm = model.segments.norm
    x = x + model.segments.table.weight[0]
    x = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-5)
    for block in theirs:
        x = block(x, src_mask=torch.zeros(B * 3, S, S).masked_fill(
            (src == 0).repeat_interleave(3, 0)[:, None], float("-inf")))  # fmt: skip
    dense = model.output.dense
    expected = torch.tanh(x[:, 0] @ dense.weight.T + dense.bias)
    torch.testing.assert_close(model(src, src), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_only_the_first_transformer_scales_its_embeddings(name):
    shape = ARCHITECTURES[name].shape
    assert getattr(shape, "scale_embedding", None) in (None, name.startswith("transformer"))
