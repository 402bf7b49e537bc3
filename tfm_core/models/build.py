"""The one place where configs become modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from torch import nn

from tfm_core.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    RecurrentConfig,
    TextModelConfig,
)
from tfm_core.config.shape import CLS_ID, CaptionShape, ImageShape, Shape, TextShape
from tfm_core.layers.norms import make_norm
from tfm_core.mistakes import make
from tfm_core.models.build_pictures import build_captioner, build_vit
from tfm_core.models.build_stack import added_positions, stack
from tfm_core.models.captioner import Captioner
from tfm_core.models.embedding import Segments, TokenEmbedding
from tfm_core.models.labels import LabelOutput, Pooler
from tfm_core.models.text import DecoderOnly, EncoderDecoder, EncoderOnly, TextModel
from tfm_core.models.vit import VisionTransformer
from tfm_core.variants.families import FAMILIES
from tfm_core.variants.record import resolve

__all__ = [
    "CaptionShape",
    "ImageShape",
    "Model",
    "TextShape",
    "build_captioner",
    "build_model",
    "build_text",
    "build_vit",
]

Model = TextModel | VisionTransformer | Captioner
M = TypeVar("M", EncoderDecoder, EncoderOnly, DecoderOnly)


def build_model(config: ModelConfig, shape: Shape) -> Model:
    """Build any model; inside ``unfilled()`` it takes no memory and almost no time."""
    return FAMILIES[config.family].build()(config, shape)


def build_text(config: TextModelConfig | RecurrentConfig, shape: TextShape) -> TextModel:
    """Build a model of words."""
    model = build_model(config, shape)
    assert not isinstance(model, VisionTransformer | Captioner)
    return model


def build_encoder_decoder(config: EncoderDecoderConfig, shape: TextShape) -> EncoderDecoder:
    """Build the Transformer of 2017."""
    output, embedding, positions = _ends(config, shape)
    src = embedding(shape.src_vocabulary)
    tgt = src if shape.one_vocabulary else embedding(shape.tgt_vocabulary)
    model = EncoderDecoder(
        src_embedding=src,
        tgt_embedding=tgt,
        src_positions=positions(),
        tgt_positions=positions(),
        encoder=stack(config, config.n_encoder_layers),
        decoder=stack(config, config.n_decoder_layers, has_cross=True, is_causal=True),
        output=output,
        pad_id=shape.pad_id,
        window=config.window,
        dropout=config.dropout,
    )
    return _finished(model, config, shape, tgt)


def build_encoder_only(config: EncoderOnlyConfig, shape: TextShape) -> EncoderOnly:
    """Build a BERT, with what it has at its ends."""
    output, embedding, positions = _ends(config, shape)
    src = embedding(shape.src_vocabulary)
    model = EncoderOnly(
        src_embedding=src,
        src_positions=positions(),
        encoder=stack(config, config.n_layers),
        output=_reader(config, shape, output),
        pad_id=shape.pad_id,
        window=config.window,
        dropout=config.dropout,
        segments=_segments(config, shape),
        pool=resolve(shape.pooling.layer) if shape.pooling else None,
        has_cls=shape.has_cls,
        cls_id=CLS_ID,
        mask_id=shape.mask_id,
    )
    return _finished(model, config, shape, src)


def build_decoder_only(config: DecoderOnlyConfig, shape: TextShape) -> DecoderOnly:
    """Build a GPT."""
    output, embedding, positions = _ends(config, shape)
    src = embedding(shape.src_vocabulary)
    tgt = src if shape.one_vocabulary else embedding(shape.tgt_vocabulary)
    model = DecoderOnly(
        src_embedding=src,
        tgt_embedding=tgt,
        positions=positions(),
        decoder=stack(config, config.n_layers, is_causal=True),
        output=output,
        pad_id=shape.pad_id,
        window=config.window,
        dropout=config.dropout,
    )
    return _finished(model, config, shape, tgt)


def _ends(
    config: TextModelConfig, shape: TextShape
) -> tuple[nn.Linear, Callable[[int], TokenEmbedding], Callable[[], nn.Module]]:
    """Return the output layer, and what makes a table of words, and positions."""
    has_bias = config.bias and shape.output_bias
    return (
        nn.Linear(config.d_model, shape.tgt_vocabulary, bias=has_bias),
        partial(TokenEmbedding, d_model=config.d_model, is_scaled=shape.scale_embedding),
        partial(added_positions, config.position, length=config.max_len, d_model=config.d_model),
    )


def _finished(model: M, config: TextModelConfig, shape: TextShape, embedding: TokenEmbedding) -> M:
    """Tie the output to a table of words and make the mistakes, where settings ask for them."""
    if config.is_tied(shape):
        model.output.weight = embedding.table.weight
    make(config.mistakes, model)
    return model


def _reader(config: TextModelConfig, shape: TextShape, output: nn.Linear) -> nn.Module:
    """Return what answers at the end of an encoder-only model."""
    if shape.is_label:
        return LabelOutput(
            config.d_model,
            shape.tgt_vocabulary,
            shape.n_labels,
            n_hidden=shape.n_hidden,
            bias=output.bias is not None,
        )
    if shape.head == "states":
        return nn.Identity()
    return Pooler(config.d_model, config.bias) if shape.head == "pooler" else output


def _segments(config: TextModelConfig, shape: TextShape) -> Segments | None:
    if not shape.n_segments:
        return None
    norm = make_norm(config.norm, config.d_model, config.norm_eps)
    return Segments(shape.n_segments, config.d_model, norm)
