"""From the config of a model that reads pictures to its module: a ViT, a captioner."""

from __future__ import annotations

from torch import nn

from tfm_core.config import CaptionerConfig, ViTConfig
from tfm_core.config.shape import CaptionShape, ImageShape, patches_per_side
from tfm_core.mistakes import make
from tfm_core.models.build_stack import added_positions, stack
from tfm_core.models.captioner import Captioner
from tfm_core.models.embedding import TokenEmbedding
from tfm_core.models.vit import VisionTransformer
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.record import resolve
from tfm_core.variants.stems import STEMS

PatchConfig = ViTConfig | CaptionerConfig


def build_vit(config: ViTConfig, shape: ImageShape) -> VisionTransformer:
    """Build a Vision Transformer.

    Raises ValueError when the patches do not divide the picture.
    """
    side = patches_per_side(shape.image_size, config.patch_size)
    pooling = POOLINGS[config.pooling]
    length = side**2 + pooling.has_cls
    model = VisionTransformer(
        stem=_stem(config, shape.channels),
        positions=added_positions(
            config.position, length=length, d_model=config.d_model, side=side
        ),
        encoder=stack(config, config.n_layers),
        head=nn.Linear(config.d_model, shape.n_classes),
        pool=resolve(pooling.layer),
        has_cls=pooling.has_cls,
        dropout=config.dropout,
    )
    make(config.mistakes, model)
    return model


def build_captioner(config: CaptionerConfig, shape: CaptionShape) -> Captioner:
    """Build a captioner: a ViT's stem, positions and encoder, and a text decoder.

    Raises ValueError when the patches do not divide the picture.
    """
    side = patches_per_side(shape.image_size, config.patch_size)
    d_model = config.d_model
    model = Captioner(
        stem=_stem(config, shape.channels),
        positions=added_positions(config.position, length=side**2, d_model=d_model, side=side),
        encoder=stack(config, config.n_encoder_layers),
        tgt_embedding=TokenEmbedding(shape.tgt_vocabulary, d_model),
        tgt_positions=added_positions(config.text_position, length=shape.tgt_len, d_model=d_model),
        decoder=stack(config, config.n_decoder_layers, has_cross=True, is_causal=True),
        output=nn.Linear(d_model, shape.tgt_vocabulary, bias=config.bias),
        pad_id=shape.pad_id,
        dropout=config.dropout,
    )
    make(config.mistakes, model)
    return model


def _stem(config: PatchConfig, channels: int) -> nn.Module:
    stem: nn.Module = resolve(STEMS[config.stem].layer)(channels, config.patch_size, config.d_model)
    return stem
