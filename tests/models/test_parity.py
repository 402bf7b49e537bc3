"""Models equal PyTorch's, published ones and the sizes of papers."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.blocks import make_block
from tfm_core.choices.config import EncoderDecoderConfig, ViTConfig
from tfm_core.data.torchvision_import import torchvision
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.layers.blocks import Stack
from tfm_core.layers.feed_forward import gelu_tanh
from tfm_core.layers.masks import causal_mask
from tfm_core.models.build import ImageShape, TextShape, build_model, build_text, build_vit
from tfm_core.probe.capture import capture

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
        d_model=768, n_heads=12, d_ff=3072, n_layers=12, patch_size=16, pooling="cls", norm_eps=1e-6
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


SMALL = {"d_model": 33, "n_heads": 3, "d_ff": 29, "n_layers": 2, "dropout": 0.0, "max_len": 23}

WORDS, N, LENGTH = 19, 2, 7


def small(name):
    known = ARCHITECTURES[name]
    shape = replace(known.shape, src_vocabulary=WORDS, tgt_vocabulary=WORDS)
    return build_model(known.model.replace(**SMALL), shape).eval()


def blocks(stack, activation, eps, *, norm_first):
    """Return torch's own blocks with weights that are copied into ours."""
    theirs = [
        nn.TransformerEncoderLayer(
            33, 3, 29, 0.0, activation, eps, batch_first=True, norm_first=norm_first
        ).eval()
        for _ in stack.layers
    ]
    for ours, other in zip(stack.layers, theirs, strict=True):
        copy_block(ours, other)
    return theirs


@torch.no_grad()
def test_gpt2_and_bert_put_their_inputs_together_as_published():
    model = small("gpt2-small")
    by_tanh = partial(F.gelu, approximate="tanh")
    theirs = blocks(model.decoder, by_tanh, 1e-5, norm_first=True)
    ids = torch.randint(4, WORDS, (N, LENGTH))
    words, positions = model.tgt_embedding.table.weight, model.positions.table
    x = words[ids] + positions[:LENGTH]
    causal = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    for block in theirs:
        x = block(x, src_mask=causal, is_causal=True)
    norm = model.decoder.final_norm
    x = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-5)
    nothing = ids[:, :0]  # a language model has no source
    torch.testing.assert_close(model(nothing, ids), x @ words.T, atol=1e-5, rtol=1e-4)
    model = small("bert-base")
    theirs = blocks(model.encoder, "gelu", 1e-12, norm_first=False)
    src = torch.randint(4, WORDS, (N, LENGTH))
    src[1, 4:] = 0
    x = model.src_embedding.table.weight[src] + model.src_positions.table[:LENGTH]
    norm = model.segments.norm
    x = x + model.segments.table.weight[0]
    x = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-12)
    for block in theirs:
        x = block(
            x,
            src_mask=torch.zeros(N * 3, LENGTH, LENGTH).masked_fill(
                (src == 0).repeat_interleave(3, 0)[:, None], float("-inf")
            ),
        )
    dense = model.output.dense
    expected = torch.tanh(x[:, 0] @ dense.weight.T + dense.bias)
    torch.testing.assert_close(model(src, src), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_bart_norms_the_sum_of_words_and_positions_on_both_sides():
    known = ARCHITECTURES["bart-base"]
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 33, "n_heads": 3}
    shape = replace(known.shape, src_vocabulary=WORDS, tgt_vocabulary=WORDS)
    model = build_model(known.model.replace(**sizes), shape).eval()
    for parameter in model.parameters():
        parameter += 0.1 * torch.randn_like(parameter)
    ids = torch.randint(4, WORDS, (N, LENGTH))
    with capture(model) as cache:
        model(ids, ids[:, 1:])
    for side, stack, length in (("src", "encoder", LENGTH), ("tgt", "decoder", LENGTH - 1)):
        positions = model.get_submodule(f"{side}_positions")
        x = model.src_embedding.table.weight[ids[:, -length:]] + positions.table[:length]
        norm = positions.norm
        expected = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-5)
        torch.testing.assert_close(cache[f"{stack}.input"], expected)


def test_published_norms_have_their_epsilon_and_one_scale():
    for name, eps in [
        ("transformer-base", 1e-5),
        ("bart-base", 1e-5),
        ("bert-base", 1e-12),
        ("bert-large", 1e-12),
        ("gpt2-xl", 1e-5),
        ("vit-ti", 1e-6),
        ("vit-h", 1e-6),
        ("vit-mnist", 1e-5),
    ]:
        known = ARCHITECTURES[name]
        with torch.device("meta"):
            model = build_model(known.model, known.shape)
        norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
        assert len(norms) >= 2 * len(model.get_submodule(next(iter(stacks(model)))).layers)
        assert {norm.eps for norm in norms} == {eps}
    for name in [name for name in ARCHITECTURES if name.startswith("gpt2")]:
        known = ARCHITECTURES[name]
        assert (known.shape.has_source, known.src_len, known.tgt_len) == (False, 0, 1024)
        assert known.model.max_len == 1024
    for name in [name for name in ARCHITECTURES if not name.startswith("text-")]:
        shape = ARCHITECTURES[name].shape
        assert getattr(shape, "scale_embedding", None) in (None, name.startswith("transformer"))


def stacks(model):
    return [name for name in ("encoder", "decoder") if hasattr(model, name)]


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def paper(**settings):
    base = {
        "d_model": 512,
        "n_heads": 8,
        "d_ff": 2048,
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "norm_first": False,
        "activation": "relu",
    }
    with torch.device("meta"):
        return build_text(EncoderDecoderConfig.parse({**base, **settings}), TextShape(37000, 37000))


def test_vision_transformers_have_the_counts_of_their_papers():
    for d_model, n_heads, n_layers, patch_size, expected in [
        (192, 3, 12, 16, 5_717_416),
        (384, 6, 12, 16, 22_050_664),
        (768, 12, 12, 16, 86_567_656),
        (768, 12, 12, 32, 88_224_232),
        (1024, 16, 24, 16, 304_326_632),
        (1280, 16, 32, 14, 632_045_800),
    ]:
        config = ViTConfig(
            d_model=d_model,
            n_heads=n_heads,
            d_ff=4 * d_model,
            n_layers=n_layers,
            patch_size=patch_size,
            pooling="cls",
        )
        with torch.device("meta"):
            model = build_vit(config, ImageShape(224, 3, 1000))
        assert count(model) == expected
    config = ViTConfig(d_model=64, n_heads=4, d_ff=128, n_layers=4, patch_size=7, pooling="cls")
    assert count(build_vit(config, ImageShape(28, 1, 10))) == 139_018
    model = paper()
    assert count(model.encoder.layers[0]) == 3_152_384
    assert count(model.decoder.layers[0]) == 4_204_032
    assert count(paper().encoder) + count(paper().decoder) + 2 * 2 * 512 == 44_140_544


def test_models_of_text_have_the_counts_of_their_papers():
    for name in [name for name, a in ARCHITECTURES.items() if a.n_parameters]:
        architecture = ARCHITECTURES[name]
        with torch.device("meta"):
            model = build_model(architecture.model, architecture.shape)
        assert count(model) == architecture.n_parameters
    for name, millions in [("transformer-base", 65), ("transformer-big", 213)]:
        architecture = ARCHITECTURES[name]
        with torch.device("meta"):
            model = build_model(architecture.model, architecture.shape)
        assert abs(count(model) / 1e6 - millions) < 0.025 * millions * 2
    for n in [2, 4, 8]:
        more = paper(n_encoder_layers=n + 2, n_decoder_layers=n + 2)
        less = paper(n_encoder_layers=n, n_decoder_layers=n)
        assert round((count(more) - count(less)) / 1e6, 1) == 14.7
    assert count(paper()) - count(paper(tie_embeddings=True)) == 37000 * 512
    architecture = ARCHITECTURES["gpt2-small"]
    with torch.device("meta"):
        model = build_model(architecture.model, architecture.shape)
    assert count(model.src_embedding) == 38_597_376
    assert count(model.positions) == 786_432
    assert [count(block) for block in model.decoder.layers] == [7_087_872] * 12
    assert count(model.decoder.final_norm) == 1_536
    architecture = ARCHITECTURES["bert-base"]
    with torch.device("meta"):
        model = build_model(architecture.model, architecture.shape)
    ends = (model.src_embedding, model.src_positions, model.segments)
    assert sum(count(part) for part in ends) == 23_837_184
    assert count(model.output) == 590_592
