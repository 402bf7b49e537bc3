"""Whole blocks and models against torch's and torchvision's, by copied weights."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.blocks import make_block
from tfm_core.choices.config import ViTConfig
from tfm_core.data.torchvision_import import torchvision
from tfm_core.layers.blocks import Stack
from tfm_core.layers.feed_forward import gelu_tanh
from tfm_core.layers.masks import causal_mask
from tfm_core.models.build import ImageShape, build_vit

B, H, S, T, D_MODEL, D_FF = 2, 3, 7, 5, 33, 29
GELU_TANH = partial(F.gelu, approximate="tanh")


def copy_attention(ours, theirs):
    ours.in_projection.weight.copy_(theirs.in_proj_weight)
    ours.in_projection.bias.copy_(theirs.in_proj_bias)
    ours.out_projection.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def copy_block(ours, theirs):
    for parameter in theirs.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    copy_attention(ours.self_attention, theirs.self_attn)
    norms = [ours.self_attention_norm, ours.feed_forward_norm]
    if ours.cross_attention is not None:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.insert(1, ours.cross_attention_norm)
    for index, norm in enumerate(norms, 1):
        norm.load_state_dict(getattr(theirs, f"norm{index}").state_dict())
    ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.down.load_state_dict(theirs.linear2.state_dict())


@pytest.mark.quick
def test_equals_torch_encoder_and_decoder_layer_and_gelu_its_formula():
    for norm_first in [True, False]:
        for eps in [1e-12, 1e-5, 0.1]:
            for activation, known in [("relu", "relu"), ("gelu", "gelu"), ("gelu_tanh", GELU_TANH)]:
                theirs = nn.TransformerEncoderLayer(
                    D_MODEL, H, D_FF, 0.0, known, eps, batch_first=True, norm_first=norm_first
                )
                ours = make_block(
                    D_MODEL, H, D_FF, activation=activation, norm_first=norm_first, eps=eps
                )
                copy_block(ours, theirs)
                x, keep = torch.randn(B, S, D_MODEL), torch.rand(B, S) > 0.3
                keep[:, 0] = True
                expected = theirs.train()(x, src_key_padding_mask=~keep)
                torch.testing.assert_close(
                    ours(x, mask=keep[:, None, None]), expected, atol=1e-5, rtol=1e-4
                )
    for norm_first in [True, False]:
        theirs = nn.TransformerDecoderLayer(
            D_MODEL, H, D_FF, 0.0, batch_first=True, norm_first=norm_first
        )
        ours = make_block(D_MODEL, H, D_FF, has_cross=True, norm_first=norm_first)
        copy_block(ours, theirs)
        x, memory = torch.randn(B, T, D_MODEL), torch.randn(B, S, D_MODEL)
        keep = torch.rand(B, S) > 0.3
        keep[:, 0] = True
        expected = theirs(
            x,
            memory,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(T),
            memory_key_padding_mask=torch.zeros(B, S).masked_fill(~keep, float("-inf")),
        )
        out = ours(x, mask=causal_mask(T), memory=memory, memory_mask=keep[:, None, None])
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-4)
    x = torch.linspace(-7, 7, 1001, dtype=torch.float64)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)  # Hendrycks & Gimpel 2016, section 2
    formula = 0.5 * x * (1 + inner.tanh())
    ours = gelu_tanh(x)
    torch.testing.assert_close(ours, formula, atol=1e-12, rtol=0)
    away = (ours - F.gelu(x)).abs().max()
    assert 0.0004 < away < 0.0005  # as its help says


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_equals_torch_transformer():
    for norm_first in [True, False]:
        theirs = nn.Transformer(
            D_MODEL, H, 2, 3, D_FF, 0.0, batch_first=True, norm_first=norm_first
        ).train()
        stacks = []
        for n, layers, norm in (
            (2, theirs.encoder.layers, theirs.encoder.norm),
            (3, theirs.decoder.layers, theirs.decoder.norm),
        ):
            blocks = [
                make_block(D_MODEL, H, D_FF, has_cross=n == 3, norm_first=norm_first)
                for _ in range(n)
            ]
            for ours, other in zip(blocks, layers, strict=True):
                copy_block(ours, other)
            stacks.append(Stack(blocks, norm))
        encoder, decoder = stacks
        src, tgt = torch.randn(B, S, D_MODEL), torch.randn(B, T, D_MODEL)
        expected = theirs(src, tgt, tgt_mask=nn.Transformer.generate_square_subsequent_mask(T))
        out = decoder(tgt, mask=causal_mask(T), memory=encoder(src))
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_equals_torchvision_vit_b_16():
    theirs = torchvision.models.vit_b_16().eval()
    config = ViTConfig(
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_layers=12,
        patch_size=16,
        pooling="cls",
        norm_eps=1e-6,
    )
    ours = build_vit(config, ImageShape(224, 3, 1000)).eval()
    theirs.heads.head.weight.normal_(std=0.02)  # zero at first, which would compare nothing
    theirs.class_token.normal_(std=0.02)
    ours.stem.projection.weight.copy_(theirs.conv_proj.weight.flatten(1))
    ours.stem.projection.bias.copy_(theirs.conv_proj.bias)
    ours.cls.copy_(theirs.class_token)
    ours.positions.table.copy_(theirs.encoder.pos_embedding[0])
    for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        copy_attention(mine.self_attention, other.self_attention)
        mine.self_attention_norm.load_state_dict(other.ln_1.state_dict())
        mine.feed_forward_norm.load_state_dict(other.ln_2.state_dict())
        mine.feed_forward.up.load_state_dict(other.mlp[0].state_dict())
        mine.feed_forward.down.load_state_dict(other.mlp[3].state_dict())
    ours.encoder.final_norm.load_state_dict(theirs.encoder.ln.state_dict())
    ours.head.load_state_dict(theirs.heads.head.state_dict())
    images = torch.randn(1, 3, 224, 224)
    torch.testing.assert_close(ours(images), theirs(images), atol=1e-4, rtol=1e-4)
    assert sum(p.numel() for p in ours.parameters()) == 86_567_656
