"""Every registered variant of every family, small, with prime sizes."""

import torch

from tfm_core.choices.config import MODEL_CONFIGS, CaptionerConfig, ViTConfig, WriterConfig
from tfm_core.choices.config.model import DEPTHS
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import (
    ADDED_TO_PATCHES,
    ADDED_TO_WORDS,
    POSITIONS,
    POSITIONS_OF_WORDS,
)
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.stems import STEMS
from tfm_core.models.build import (
    CaptionShape,
    ImageShape,
    TextShape,
    build_captioner,
    build_text,
    build_vit,
)

SRC_WORDS, TGT_WORDS, S, T = 17, 19, 7, 5
TEXT_FAMILIES = ["encoder-decoder", "encoder-only", "decoder-only"]
SEQUENCE_FAMILIES = [*TEXT_FAMILIES, "recurrent"]
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 11}


def mistakes_of(family):
    """Every mistake that a family can make with its other settings as they are."""
    return list(MODEL_CONFIGS[family].offered("mistakes"))


def spread(**choices):
    """Yield settings in which each choice of each setting is once, of all settings at a time."""
    columns = {name: list(values) for name, values in choices.items()}
    for i in range(max(map(len, columns.values()))):
        yield {name: values[i % len(values)] for name, values in columns.items()}


def _deep(family, n_layers):
    """The setting of the depth of each stack of a family."""
    return {name: n_layers for name in DEPTHS if name in MODEL_CONFIGS[family].model_fields}


def _text_variants():
    """(family, settings) with each choice of each setting once, and each mistake alone."""
    for family in TEXT_FAMILIES:
        for settings in (
            *spread(position=POSITIONS_OF_WORDS, activation=ACTIVATIONS, norm=NORMS),
            {"norm_first": False, "norm_eps": 1e-12, "bias": False},
            {"norm": "rmsnorm", "norm_eps": 0.03, "window": 2, "final_norm": "never"},
            {"tie_embeddings": True, "dropout": 0.1, "final_norm": "always"},
            {"window": 1, "full_every": 2, **_deep(family, 3)},
            {"projection_bias": False, "norm_first": False, "final_norm": "always"},
            {"query_key_gain": 2.0},
            {"n_kv_heads": 1, "position": "rotary", "query_key_gain": 2.0},
            {"n_heads": 6, "n_kv_heads": 2, "position": "alibi", "bias": False},
            {"n_experts": 3, "activation": "swiglu", "bias": False},
            {"n_experts": 2, "top_k": 1, "dropout": 0.1},
            {"d_ff": 0},
            {"d_ff": 0, "n_experts": 3, "norm_first": False, "dropout": 0.1},
            {"qk_norm": True, "query_key_gain": 2.0},
            {"sink": "learned", "n_kv_heads": 1},
            {"head_dim": 10, "qkv_bias": True, "bias": False, "position": "rotary"},
            {"head_dim": 2, "n_kv_heads": 1, "qk_norm": True, "position": "t5-bias", "window": 3},
            {"head_dim": 10, "sink": "learned", "query_key_gain": 2.0},
            {"sink": "learned", "position": "t5-bias", "dropout": 0.1},
            {"sink": "zero", "position": "alibi"},
            {"sink": "zero", "mistakes": "no-scale"},
            {"position": "rotary", "rope_theta": 500.0, "rope_scaling": "linear"},
            {"position": "rotary", "rope_scaling": "llama3", "rope_original_len": 40},
            {"qk_norm": True, "n_kv_heads": 1, "position": "rotary", "norm_first": False},
        ):
            yield family, settings
        yield from ((family, {"mistakes": name}) for name in mistakes_of(family))
        yield family, {"mistakes": "no-residuals", "norm_first": False, "dropout": 0.1}
        yield family, {"mistakes": "no-residuals,no-scale", "norm": "none"}
        yield family, {"mistakes": "residual-from-normed,scaled-by-d-model", "position": "t5-bias"}
        if issubclass(MODEL_CONFIGS[family], WriterConfig):
            yield family, {"mistakes": "mask-transposed", "window": 2, "position": "alibi"}


def _recurrent_variants():
    """(family, settings): each cell with each attention, and each other setting once."""
    for cell in CELLS:
        for attention in ALIGNMENT_SCORES:
            yield "recurrent", {"cell": cell, "attention": attention}
        yield "recurrent", {"cell": cell, "n_layers": 3}
        yield "recurrent", {"cell": cell, "attention": "general", "n_layers": 2, "dropout": 0.1}
        yield "recurrent", {"cell": cell, "is_bidirectional": False}


def _vit_variants():
    """Settings with each choice of each setting once, and each mistake alone."""
    yield from spread(position=POSITIONS, pooling=["cls", "mean"], stem=STEMS)
    yield {"pooling": "cls", "position": "learned"}
    yield {"norm_first": False, "bias": False}
    yield {"activation": "gelu_tanh", "norm_eps": 1e-6}
    yield {"mistakes": "sliced-heads", "final_norm": "never", "pooling": "cls", "bias": False}
    yield {"mistakes": "sliced-heads", "query_key_gain": 0.5}
    yield {"n_heads": 6, "n_kv_heads": 2, "pooling": "cls"}
    yield {"n_experts": 3, "pooling": "cls"}
    yield {"d_ff": 0}
    yield {"d_ff": 0, "pooling": "cls", "norm_first": False}
    yield {"qk_norm": True, "norm": "none"}
    yield {"sink": "learned"}
    yield {"sink": "zero", "pooling": "cls"}
    yield {"position": "rotary", "rope_theta": 50.0, "rope_scaling": "linear", "pooling": "cls"}
    yield from ({"pooling": "cls", "mistakes": name, "dropout": 0.1} for name in mistakes_of("vit"))
    yield {"pooling": "cls", "mistakes": "no-residuals,no-scale", "norm_first": False}
    scales = ("", "no-scale", "scaled-by-d-model")
    yield from ({"norm": "none", "mistakes": name, "position": "alibi"} for name in scales)


def _captioner_variants():
    """Settings with each choice of each setting once, and each mistake alone."""
    yield from spread(
        position=ADDED_TO_PATCHES,
        text_position=ADDED_TO_WORDS,
        stem=STEMS,
        activation=ACTIVATIONS,
        norm=NORMS,
    )
    yield {"norm_first": False, "bias": False, "norm_eps": 1e-6}
    yield {"n_encoder_layers": 1, "n_decoder_layers": 3, "dropout": 0.1, "query_key_gain": 2.0}
    yield {"mistakes": "shared-norm,no-output-projection"}
    yield {"n_experts": 3}
    yield {"d_ff": 0}
    yield {"n_kv_heads": 1, "qk_norm": True}
    yield {"sink": "learned"}
    yield from ({"mistakes": name} for name in mistakes_of("captioner"))
    yield {"mistakes": "no-residuals,no-scale"}
    yield {"mistakes": "mask-transposed,scaled-by-d-model"}


TEXT_VARIANTS = [*_text_variants(), *_recurrent_variants()]
VIT_VARIANTS = list(_vit_variants())
CAPTIONER_VARIANTS = list(_captioner_variants())
CAPTION_SHAPE = CaptionShape(6, 3, TGT_WORDS, T + 2)


def text_config(family, **settings):
    small = {"d_model": 12} if family == "recurrent" else SMALL
    return MODEL_CONFIGS[family].parse({**small, **settings})


def text_model(family, **settings):
    torch.manual_seed(0)
    same_words = family == "encoder-only" and settings.get("tie_embeddings")
    config = text_config(family, **settings)
    return build_text(config, TextShape(TGT_WORDS if same_words else SRC_WORDS, TGT_WORDS))


def vit_model(**settings):
    torch.manual_seed(0)
    config = ViTConfig.parse({**SMALL, "patch_size": 2, **settings})
    return build_vit(config, ImageShape(6, 3, 5))


def captioner_model(**settings):
    torch.manual_seed(0)
    config = CaptionerConfig.parse({**SMALL, "patch_size": 2, **settings})
    return build_captioner(config, CAPTION_SHAPE)


def caption_batch():
    """Pictures and shifted captions, the second one padded."""
    generator = torch.Generator().manual_seed(3)
    return torch.randn(2, 3, 6, 6, generator=generator), text_batch()[1]


def text_batch():
    """Source and shifted target ids, the second example padded."""
    generator = torch.Generator().manual_seed(1)
    src = torch.randint(4, SRC_WORDS, (2, S), generator=generator)
    tgt = torch.randint(4, TGT_WORDS, (2, T), generator=generator)
    tgt[:, 0] = 1
    src[1, 4:] = 0
    tgt[1, 3:] = 0
    return src, tgt
