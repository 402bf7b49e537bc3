"""Parameter counts against the published figures."""

import pytest
import torch

from tfm_core.config import EncoderDecoderConfig, ViTConfig
from tfm_core.models.build import ImageShape, TextShape, build_text, build_vit


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def paper(**settings):
    base = {
        "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6,
        "norm_first": False, "activation": "relu",
    }  # fmt: skip
    with torch.device("meta"):
        return build_text(EncoderDecoderConfig.parse({**base, **settings}), TextShape(37000, 37000))


@pytest.mark.parametrize(
    ("d_model", "n_heads", "n_layers", "patch_size", "expected"),
    [
        (192, 3, 12, 16, 5_717_416),
        (384, 6, 12, 16, 22_050_664),
        (768, 12, 12, 16, 86_567_656),
        (768, 12, 12, 32, 88_224_232),
        (1024, 16, 24, 16, 304_326_632),
        (1280, 16, 32, 14, 632_045_800),
    ],
    ids=["Ti/16", "S/16", "B/16", "B/32", "L/16", "H/14"],
)
def test_vision_transformers_at_scale(d_model, n_heads, n_layers, patch_size, expected):
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


def test_the_mnist_vision_transformer():
    config = ViTConfig(d_model=64, n_heads=4, d_ff=128, n_layers=4, patch_size=7, pooling="cls")
    assert count(build_vit(config, ImageShape(28, 1, 10))) == 139_018


def test_layers_of_the_base_transformer():
    model = paper()
    assert count(model.encoder.layers[0]) == 3_152_384
    assert count(model.decoder.layers[0]) == 4_204_032


def test_stacks_with_two_final_norms_are_torchs_default():
    assert count(paper().encoder) + count(paper().decoder) + 2 * 2 * 512 == 44_140_544


@pytest.mark.parametrize("n", [2, 4, 8])
def test_two_more_layers_cost_what_table_3_says(n):
    more = paper(n_encoder_layers=n + 2, n_decoder_layers=n + 2)
    less = paper(n_encoder_layers=n, n_decoder_layers=n)
    assert round((count(more) - count(less)) / 1e6, 1) == 14.7


def test_tied_embeddings_are_counted_once():
    assert count(paper()) - count(paper(tie_embeddings=True)) == 37000 * 512
