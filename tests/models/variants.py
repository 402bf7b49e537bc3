"""Every registered variant of every family, small, with prime sizes."""

from typing import get_args

import torch

from tfm_core.config import MODEL_CONFIGS, ViTConfig
from tfm_core.config.choices import (
    ActivationName,
    CellName,
    NormName,
    PatchPositionName,
    PoolingName,
    PositionName,
    RecurrentAttentionName,
    StemName,
)
from tfm_core.models.build import ImageShape, TextShape, build_text, build_vit

SRC_WORDS, TGT_WORDS, S, T = 17, 19, 7, 5
TEXT_FAMILIES = [name for name in MODEL_CONFIGS if name not in {"vit", "recurrent"}]
SEQUENCE_FAMILIES = [*TEXT_FAMILIES, "recurrent"]
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 11}


def _text_variants():
    """(family, settings) with each choice of each setting once."""
    for family in TEXT_FAMILIES:
        yield from ((family, {"position": name}) for name in get_args(PositionName))
        yield from ((family, {"activation": name}) for name in get_args(ActivationName))
        yield from ((family, {"norm": name}) for name in get_args(NormName))
        for settings in (
            {"norm_first": False},
            {"bias": False},
            {"window": 2},
            {"tie_embeddings": True},
            {"dropout": 0.1},
        ):
            yield family, settings


def _recurrent_variants():
    """(family, settings): each cell with each attention, and each other setting once."""
    for cell in get_args(CellName):
        for attention in get_args(RecurrentAttentionName):
            yield "recurrent", {"cell": cell, "attention": attention}
        yield "recurrent", {"cell": cell, "n_layers": 3}
        yield "recurrent", {"cell": cell, "attention": "general", "n_layers": 2, "dropout": 0.1}
        yield "recurrent", {"cell": cell, "is_bidirectional": False}


def _vit_variants():
    """Settings with each choice of each setting once."""
    yield from ({"position": name} for name in get_args(PatchPositionName))
    yield from ({"pooling": name} for name in get_args(PoolingName))
    yield from ({"stem": name} for name in get_args(StemName))
    yield from ({"pooling": "cls", "position": name} for name in get_args(PatchPositionName))
    yield {"norm_first": False, "bias": False}


TEXT_VARIANTS = [*_text_variants(), *_recurrent_variants()]
VIT_VARIANTS = list(_vit_variants())


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


def text_batch():
    """Source and shifted target ids, the second example padded."""
    generator = torch.Generator().manual_seed(1)
    src = torch.randint(4, SRC_WORDS, (2, S), generator=generator)
    tgt = torch.randint(4, TGT_WORDS, (2, T), generator=generator)
    tgt[:, 0] = 1
    src[1, 4:] = 0
    tgt[1, 3:] = 0
    return src, tgt
