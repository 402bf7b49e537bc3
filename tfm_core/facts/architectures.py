"""Models to scale, published or of the notebooks: settings, ends, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Experiment,
    ModelConfig,
    ViTConfig,
)
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.data.tasks import data_shape
from tfm_core.sentences import N_, Paragraph, joined


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model to scale.

    src_len and tgt_len: tokens of one full example (0 for pictures). n_parameters: the published
    or recomputed count, exact; None where the paper does not fix it. source: where it stands.
    batch: examples that the walk shows. own_class: the path of the module that is the notebook's
    class, where more stands around it here. note: what its text says of it, and what is left open.
    """

    name: str
    label: str
    model: ModelConfig
    shape: Shape
    src_len: int = 0
    tgt_len: int = 0
    n_parameters: int | None = None
    source: str = ""
    batch: int = 1
    own_class: str = ""
    note: str = ""


_WORDS, _LONGEST = 10_000, 5_000
_DROPPED_AFTER = N_(
    "Dropout is before the sum, as in the paper; the notebook has it after each norm."
)
_SIZES: dict[str, object] = {
    "d_model": 512,
    "n_heads": 8,
    "d_ff": 2048,
    "dropout": 0.1,
    "norm_first": False,
    "activation": "relu",
}
_LIBRARY: dict[str, object] = {
    "position": "learned",
    "max_len": _LONGEST,
    "projection_bias": False,
    "final_norm": "always",
}
"""What the models of one notebook have in common."""


def _pair(**settings: object) -> EncoderDecoderConfig:
    """Return an encoder and a decoder of 6 blocks each, of the sizes of the paper's base model."""
    layers = {"n_encoder_layers": 6, "n_decoder_layers": 6}
    return EncoderDecoderConfig.parse(_SIZES | layers | settings)


def _encoder(n_layers: int, **settings: object) -> EncoderOnlyConfig:
    return EncoderOnlyConfig.parse(_SIZES | {"n_layers": n_layers} | settings)


FROM_TEXTS = (
    Architecture(
        "text-encoder",
        N_("From the notebook: Encoder(3, 16, 4, 2)"),
        _encoder(3, d_model=16, n_heads=4, d_ff=2, dropout=0.0),
        TextShape(100, 100, one_vocabulary=True, head="states", scale_embedding=False),
        10,
        10,
        batch=2,
        own_class="encoder",
        note=Paragraph("facts/study-encoder"),
    ),
    Architecture(
        "text-transformer",
        N_("From the notebook: Transformer, 10,000 words"),
        _pair(position="learned", max_len=100),
        TextShape(_WORDS, _WORDS, scale_embedding=False),
        10,
        10,
        59_610_896,
        batch=2,
        note=joined(Paragraph("facts/study-transformer"), _DROPPED_AFTER),
    ),
    Architecture(
        "text-simple",
        N_("From the notebook: SimpleTransformer, encoder-only"),
        _encoder(6, **_LIBRARY),
        TextShape(_WORDS, _WORDS, one_vocabulary=True, head="states", scale_embedding=False),
        50,
        50,
        26_583_040,
        batch=2,
        note=Paragraph("facts/study-attention"),
    ),
    Architecture(
        "text-synthetic",
        N_("From the notebook: My_Transformer, synthetic ids"),
        _pair(dropout=0.0, mistakes=("shared-norm", "no-output-projection")),
        TextShape(2500, 3000, scale_embedding=False),
        100,
        100,
        43_747_256,
        batch=5,
        note=Paragraph("facts/study-synthetic"),
    ),
    Architecture(
        "text-sentiment",
        N_("From the notebook: SentimentAnalyzer, 3 classes"),
        _encoder(4, d_model=256, pooling="mean", **_LIBRARY),
        TextShape(_WORDS, 7, head="mean", n_labels=3, n_hidden=128, scale_embedding=False),
        50,
        1,
        9_129_987,
        batch=32,
        note=Paragraph("facts/study-sentiment"),
    ),
    Architecture(
        "text-captions",
        N_("From the notebook: ImageCaptioning, 36 regions"),
        CaptionerConfig.parse(
            _SIZES
            | {
                "n_decoder_layers": 6,
                "stem": "patches",
                "patch_size": 1,
                "position": "none",
                "text_position": "learned",
                "projection_bias": False,
                "final_norm": "always",
            }
        ),
        CaptionShape(6, 2048, _WORDS, _LONGEST, has_regions=True),
        0,
        20,
        33_810_704,
        batch=16,
        note=Paragraph("facts/study-captions"),
    ),
    Architecture(
        "text-korean",
        N_("From the notebook: EncoderDecoderTransformer, English to Korean"),
        _pair(**_LIBRARY),
        TextShape(_WORDS, 8000, scale_embedding=False),
        20,
        25,
        62_543_680,
        note=Paragraph("facts/study-translation"),
    ),
    Architecture(
        "text-vit",
        N_("From the notebook: MyVIT for MNIST"),
        ViTConfig(
            d_model=8,
            n_heads=2,
            d_ff=24,
            n_layers=2,
            patch_size=4,
            pooling="cls",
            final_norm="never",
            mistakes=("feed-forward-residual-from-normed", "sliced-heads"),
        ),
        ImageShape(28, 1, 10),
        n_parameters=1_770,
        batch=128,
        note=Paragraph("facts/study-vit"),
    ),
)
"""The models, in the order of the notebooks."""


__all__ = ["ARCHITECTURES", "Architecture", "of_experiment"]


def of_experiment(experiment: Experiment, label: str) -> Architecture:
    """Return the architecture of an experiment, with the longest sequences of its task."""
    shape = data_shape(experiment)
    src, tgt = 0, 0
    if isinstance(shape, TextShape):
        task = experiment.task
        src, tgt = task.max_src_len, task.n_answers
    elif isinstance(shape, CaptionShape):
        tgt = shape.tgt_len
    return Architecture("", label, experiment.model, shape, src, tgt)


def _paper(name: str, label: str, d_model: int, n_heads: int, row: str) -> Architecture:
    model = EncoderDecoderConfig(
        d_model=d_model,
        n_heads=n_heads,
        d_ff=4 * d_model,
        n_encoder_layers=6,
        n_decoder_layers=6,
        dropout=0.1,
        norm_first=False,
        activation="relu",
        tie_embeddings=True,
    )
    shape = TextShape(37000, 37000, one_vocabulary=True, output_bias=False)
    source = N_("Vaswani et al. 2017, Table 3: {row}; no fixed vocabulary", row=row)
    return Architecture(name, label, model, shape, 128, 128, None, source)


def _t5(name: str, label: str, width: int, heads: int, layers: int, count: int) -> Architecture:
    model = EncoderDecoderConfig(
        d_model=width,
        n_heads=heads,
        d_ff=4 * width,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
        dropout=0.1,
        activation="relu",
        norm="rmsnorm",
        norm_eps=1e-6,
        bias=False,
        position="t5-bias",
        mistakes=("no-scale",),
        tie_embeddings=True,
    )
    shape = TextShape(
        32128, 32128, pad_id=None, one_vocabulary=True, output_bias=False, scale_embedding=False
    )
    note = N_("T5 does not divide scores by √d_head: it starts from smaller query weights instead.")
    return Architecture(name, label, model, shape, 512, 512, count, "Raffel et al. 2020", note=note)


def _bart() -> Architecture:
    width = {"d_model": 768, "n_heads": 12, "d_ff": 3072}
    model = _pair(**width, activation="gelu", position="learned", max_len=1026, tie_embeddings=True)
    shape = TextShape(
        50265,
        50265,
        pad_id=1,
        one_vocabulary=True,
        output_bias=False,
        scale_embedding=False,
        embedding_norm=True,
    )
    note = N_("Two of the 1,026 positions of each side are never used.")
    source = "Lewis et al. 2020"
    return Architecture(
        "bart-base", "BART-base", model, shape, 1024, 1024, 139_420_416, source, note=note
    )


def _bert(name: str, label: str, width: int, heads: int, layers: int, count: int) -> Architecture:
    model = EncoderOnlyConfig(
        d_model=width,
        n_heads=heads,
        d_ff=4 * width,
        n_layers=layers,
        dropout=0.1,
        norm_first=False,
        norm_eps=1e-12,
        position="learned",
        max_len=512,
    )
    shape = TextShape(
        30522, 30522, one_vocabulary=True, head="pooler", n_segments=2, scale_embedding=False
    )
    return Architecture(name, label, model, shape, 512, 512, count, "Devlin et al. 2019")


def _gpt2(name: str, label: str, width: int, heads: int, layers: int, count: int) -> Architecture:
    model = DecoderOnlyConfig(
        d_model=width,
        n_heads=heads,
        d_ff=4 * width,
        n_layers=layers,
        dropout=0.1,
        activation="gelu_tanh",
        position="learned",
        max_len=1024,
        tie_embeddings=True,
    )
    shape = TextShape(
        50257,
        50257,
        pad_id=None,
        one_vocabulary=True,
        output_bias=False,
        scale_embedding=False,
        has_source=False,
    )
    return Architecture(name, label, model, shape, 0, 1024, count, "Radford et al. 2019")


def _llama(
    name: str, label: str, source: str, *, words: int, length: int, count: int, **sizes: float
) -> Architecture:
    """Return a model as LLaMA's are, that reads ``length`` of ``words`` pieces of words."""
    model = DecoderOnlyConfig.parse(
        {"norm": "rmsnorm", "activation": "swiglu", "bias": False, "position": "rotary", **sizes}
    )
    shape = TextShape(
        words, words, pad_id=None, one_vocabulary=True, scale_embedding=False, has_source=False
    )
    return Architecture(name, label, model, shape, 0, length, count, source)


def _vit(
    name: str, label: str, sizes: tuple[int, int, int], patch: int, count: int, source: str
) -> Architecture:
    width, heads, layers = sizes
    model = ViTConfig(
        d_model=width,
        n_heads=heads,
        d_ff=4 * width,
        n_layers=layers,
        patch_size=patch,
        pooling="cls",
        norm_eps=1e-6,
    )
    return Architecture(name, label, model, ImageShape(224, 3, 1000), 0, 0, count, source)


def _digits() -> Architecture:
    model = ViTConfig(d_model=64, n_heads=4, d_ff=128, n_layers=4, patch_size=7, pooling="cls")
    shape = ImageShape(28, 1, 10)
    return Architecture("vit-mnist", N_("ViT for MNIST, this app"), model, shape, 0, 0, 139_018)


_DOSOVITSKIY = N_("Dosovitskiy et al. 2021, Table 1")
_TOUVRON = N_("Touvron et al. 2021 (DeiT), timm")

ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        _paper("transformer-base", N_("Transformer base (2017)"), 512, 8, "65 M"),
        _paper("transformer-big", N_("Transformer big (2017)"), 1024, 16, "213 M"),
        _t5("t5-small", "T5-small", 512, 8, 6, 60_506_624),
        _t5("t5-base", "T5-base", 768, 12, 12, 222_903_552),
        _bart(),
        _bert("bert-base", "BERT-base", 768, 12, 12, 109_482_240),
        _bert("bert-large", "BERT-large", 1024, 16, 24, 335_141_888),
        _gpt2("gpt2-small", N_("GPT-2 small"), 768, 12, 12, 124_439_808),
        _gpt2("gpt2-medium", N_("GPT-2 medium"), 1024, 16, 24, 354_823_168),
        _gpt2("gpt2-large", N_("GPT-2 large"), 1280, 20, 36, 774_030_080),
        _gpt2("gpt2-xl", N_("GPT-2 XL"), 1600, 25, 48, 1_557_611_200),
        _llama(
            "tinyllama",
            N_("TinyLlama 1.1B"),
            "Zhang et al. 2024",
            words=32000,
            length=2048,
            count=1_100_048_384,
            d_model=2048,
            n_heads=32,
            n_kv_heads=4,
            d_ff=5632,
            n_layers=22,
        ),
        _llama(
            "llama-3-8b",
            N_("Llama 3 8B"),
            "Grattafiori et al. 2024",
            words=128_256,
            length=8192,
            count=8_030_261_248,
            d_model=4096,
            n_heads=32,
            n_kv_heads=8,
            d_ff=14336,
            n_layers=32,
            rope_theta=500_000,
        ),
        _llama(
            "qwen2.5-0.5b",
            N_("Qwen2.5 0.5B"),
            "Yang et al. 2024",
            words=151_936,
            length=32_768,
            count=494_032_768,
            d_model=896,
            n_heads=14,
            n_kv_heads=2,
            qkv_bias=True,
            norm_eps=1e-6,
            d_ff=4864,
            n_layers=24,
            rope_theta=1e6,
            tie_embeddings=True,
        ),
        _llama(
            "qwen3-0.6b",
            N_("Qwen3 0.6B"),
            "Yang et al. 2025",
            words=151_936,
            length=32_768,
            count=596_049_920,
            d_model=1024,
            n_heads=16,
            n_kv_heads=8,
            head_dim=128,
            qk_norm=True,
            norm_eps=1e-6,
            d_ff=3072,
            n_layers=28,
            rope_theta=1e6,
            tie_embeddings=True,
        ),
        _llama(
            "qwen3-8b",
            N_("Qwen3 8B"),
            "Yang et al. 2025",
            words=151_936,
            length=32_768,
            count=8_190_735_360,
            d_model=4096,
            n_heads=32,
            n_kv_heads=8,
            qk_norm=True,
            norm_eps=1e-6,
            d_ff=12288,
            n_layers=36,
            rope_theta=1e6,
        ),
        _llama(
            "mixtral-8x7b",
            N_("Mixtral 8x7B"),
            "Jiang et al. 2024",
            words=32000,
            length=32_768,
            count=46_702_792_704,
            d_model=4096,
            n_heads=32,
            n_kv_heads=8,
            d_ff=14336,
            n_layers=32,
            n_experts=8,
            top_k=2,
            rope_theta=1e6,
        ),
        _vit("vit-ti", N_("ViT-Ti/16"), (192, 3, 12), 16, 5_717_416, _TOUVRON),
        _vit("vit-s", N_("ViT-S/16"), (384, 6, 12), 16, 22_050_664, _TOUVRON),
        _vit("vit-b", N_("ViT-B/16"), (768, 12, 12), 16, 86_567_656, _DOSOVITSKIY),
        _vit("vit-b-32", N_("ViT-B/32"), (768, 12, 12), 32, 88_224_232, _DOSOVITSKIY),
        _vit("vit-l", N_("ViT-L/16"), (1024, 16, 24), 16, 304_326_632, _DOSOVITSKIY),
        _vit("vit-h", N_("ViT-H/14"), (1280, 16, 32), 14, 632_045_800, _DOSOVITSKIY),
        _digits(),
        *FROM_TEXTS,
    )
}
