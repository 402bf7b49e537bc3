"""GPT-2 and BERT compute what was published: against their arithmetic by torch's own layers."""

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tests.models.test_parity import copy_block
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.models.build import build_model
from tfm_core.probe.capture import capture

SMALL = {"d_model": 33, "n_heads": 3, "d_ff": 29, "n_layers": 2, "dropout": 0.0, "max_len": 23}
WORDS, B, S = 19, 2, 7


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
    ids = torch.randint(4, WORDS, (B, S))
    words, positions = model.tgt_embedding.table.weight, model.positions.table
    x = words[ids] + positions[:S]
    causal = nn.Transformer.generate_square_subsequent_mask(S)
    for block in theirs:
        x = block(x, src_mask=causal, is_causal=True)
    norm = model.decoder.final_norm
    x = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-5)
    nothing = ids[:, :0]  # a language model has no source
    torch.testing.assert_close(model(nothing, ids), x @ words.T, atol=1e-5, rtol=1e-4)
    model = small("bert-base")
    theirs = blocks(model.encoder, "gelu", 1e-12, norm_first=False)
    src = torch.randint(4, WORDS, (B, S))
    src[1, 4:] = 0
    x = model.src_embedding.table.weight[src] + model.src_positions.table[:S]
    norm = model.segments.norm
    x = x + model.segments.table.weight[0]
    x = F.layer_norm(x, (33,), norm.weight, norm.bias, 1e-12)
    for block in theirs:
        x = block(x, src_mask=torch.zeros(B * 3, S, S).masked_fill(
            (src == 0).repeat_interleave(3, 0)[:, None], float("-inf")))  # fmt: skip
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
    ids = torch.randint(4, WORDS, (B, S))
    with capture(model) as cache:
        model(ids, ids[:, 1:])
    for side, stack, length in (("src", "encoder", S), ("tgt", "decoder", S - 1)):
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
