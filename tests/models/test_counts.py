"""Parameter counts against the published figures."""

import torch

from tfm_core.choices.config import EncoderDecoderConfig, ViTConfig
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.models.build import ImageShape, TextShape, build_model, build_text, build_vit


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def paper(**settings):
    base = {
        "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6,
        "norm_first": False, "activation": "relu",
    }  # fmt: skip
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
