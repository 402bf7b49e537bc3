"""The one place where configs become modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from tfm_core.config import (
    BlockConfig,
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    RecurrentConfig,
    TextModelConfig,
    ViTConfig,
)
from tfm_core.config.shape import CLS_ID, CaptionShape, ImageShape, Shape, TextShape
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.norms import NORM_EPS, make_norm
from tfm_core.layers.patches import STEM_LAYERS
from tfm_core.layers.positions import (
    FixedPositions,
    LearnedPositions,
    NoPositions,
    Rotation,
    alibi_bias,
    sinusoidal,
    sinusoidal_2d,
)
from tfm_core.models.build_recurrent import build_recurrent
from tfm_core.models.captioner import Captioner
from tfm_core.models.embeddings import Segments, TokenEmbedding
from tfm_core.models.labels import LabelOutput
from tfm_core.models.text import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    Pooler,
    TextModel,
)
from tfm_core.models.vit import VisionTransformer

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
PatchConfig = ViTConfig | CaptionerConfig


def build_model(config: ModelConfig, shape: Shape) -> Model:
    """Build any model; on ``torch.device("meta")`` it takes no memory and almost no time."""
    if isinstance(config, CaptionerConfig):
        assert isinstance(shape, CaptionShape)
        return build_captioner(config, shape)
    if isinstance(config, ViTConfig):
        assert isinstance(shape, ImageShape)
        return build_vit(config, shape)
    assert isinstance(shape, TextShape)
    return build_text(config, shape)


def build_text(config: TextModelConfig | RecurrentConfig, shape: TextShape) -> TextModel:
    """Build one of the three text topologies, or a recurrent model."""
    if isinstance(config, RecurrentConfig):
        return build_recurrent(config, shape)
    has_bias = config.bias and shape.output_bias
    output = nn.Linear(config.d_model, shape.tgt_vocabulary, bias=has_bias)
    embedding = partial(TokenEmbedding, d_model=config.d_model, is_scaled=shape.scale_embedding)
    src = embedding(shape.src_vocabulary)
    model: TextModel
    if isinstance(config, EncoderOnlyConfig):
        model = EncoderOnly(
            src_embedding=src,
            src_positions=_text_positions(config.position, config.d_model, config.max_len),
            encoder=_stack(config, config.n_layers),
            output=_reader(config, shape, output),
            pad_id=shape.pad_id,
            window=config.window,
            dropout=config.dropout,
            segments=_segments(config, shape),
            pooling=shape.head if shape.is_label else "",
            cls_id=CLS_ID,
            mask_id=shape.mask_id,
        )
        tied = src
    elif isinstance(config, DecoderOnlyConfig):
        tied = src if shape.one_vocabulary else embedding(shape.tgt_vocabulary)
        model = DecoderOnly(
            src_embedding=src,
            tgt_embedding=tied,
            positions=_text_positions(config.position, config.d_model, config.max_len),
            decoder=_stack(config, config.n_layers),
            output=output,
            pad_id=shape.pad_id,
            window=config.window,
            dropout=config.dropout,
        )
    else:
        assert isinstance(config, EncoderDecoderConfig)
        tied = src if shape.one_vocabulary else embedding(shape.tgt_vocabulary)
        model = EncoderDecoder(
            src_embedding=src,
            tgt_embedding=tied,
            src_positions=_text_positions(config.position, config.d_model, config.max_len),
            tgt_positions=_text_positions(config.position, config.d_model, config.max_len),
            encoder=_stack(config, config.n_encoder_layers),
            decoder=_stack(config, config.n_decoder_layers, has_cross=True),
            output=output,
            pad_id=shape.pad_id,
            window=config.window,
            dropout=config.dropout,
        )
    if config.tie_embeddings and tied.table.weight.shape == output.weight.shape:
        output.weight = tied.table.weight
    return model


def _reader(config: TextModelConfig, shape: TextShape, output: nn.Linear) -> nn.Module:
    """Return what answers at the end of an encoder-only model."""
    if shape.is_label:
        return LabelOutput(
            config.d_model, shape.tgt_vocabulary, shape.n_labels, bias=output.bias is not None
        )
    return Pooler(config.d_model, config.bias) if shape.head == "pooler" else output


def _segments(config: TextModelConfig, shape: TextShape) -> Segments | None:
    if not shape.n_segments:
        return None
    return Segments(shape.n_segments, config.d_model, make_norm(config.norm, config.d_model))


def build_vit(
    config: ViTConfig, shape: ImageShape, *, norm_eps: float = NORM_EPS
) -> VisionTransformer:
    """Build a Vision Transformer; published weights often want a ``norm_eps`` of 1e-6.

    Raises ValueError when the patches do not divide the picture.
    """
    side = _patches_per_side(config, shape)
    has_cls = config.pooling == "cls"
    length = side**2 + has_cls
    return VisionTransformer(
        stem=STEM_LAYERS[config.stem](shape.channels, config.patch_size, config.d_model),
        positions=_patch_positions(config, side, length),
        encoder=_stack(config, config.n_layers, norm_eps=norm_eps),
        head=nn.Linear(config.d_model, shape.n_classes),
        has_cls=has_cls,
        dropout=config.dropout,
    )


def build_captioner(config: CaptionerConfig, shape: CaptionShape) -> Captioner:
    """Build a captioner: a ViT's stem, positions and encoder, and a text decoder.

    Raises ValueError when the patches do not divide the picture.
    """
    side = _patches_per_side(config, shape)
    d_model = config.d_model
    return Captioner(
        stem=STEM_LAYERS[config.stem](shape.channels, config.patch_size, d_model),
        positions=_patch_positions(config, side, side**2),
        encoder=_stack(config, config.n_encoder_layers),
        tgt_embedding=TokenEmbedding(shape.tgt_vocabulary, d_model),
        tgt_positions=_text_positions(config.text_position, d_model, shape.tgt_len),
        decoder=_stack(config, config.n_decoder_layers, has_cross=True),
        output=nn.Linear(d_model, shape.tgt_vocabulary, bias=config.bias),
        pad_id=shape.pad_id,
        dropout=config.dropout,
    )


def _patches_per_side(config: PatchConfig, shape: ImageShape | CaptionShape) -> int:
    if shape.image_size % config.patch_size:
        raise ValueError(
            f"patch_size {config.patch_size} does not divide image_size {shape.image_size}"
        )
    return shape.image_size // config.patch_size


def _stack(
    config: TextModelConfig | PatchConfig,
    n_layers: int,
    *,
    has_cross: bool = False,
    norm_eps: float = NORM_EPS,
) -> Stack:
    blocks = [_block(config, has_cross, norm_eps) for _ in range(n_layers)]
    final_norm = make_norm(config.norm, config.d_model, norm_eps) if config.norm_first else None
    return Stack(blocks, final_norm, relative=_relative(config))


def _block(config: BlockConfig, has_cross: bool, norm_eps: float) -> Block:
    return Block(
        config.d_model,
        config.n_heads,
        config.d_ff,
        has_cross=has_cross,
        dropout=config.dropout,
        activation=config.activation,
        norm=config.norm,
        norm_first=config.norm_first,
        bias=config.bias,
        eps=norm_eps,
    )


def _relative(
    config: TextModelConfig | PatchConfig,
) -> Callable[[Tensor], dict[str, Tensor | Rotation]] | None:
    if config.position == "rotary":
        return partial(_rotation, d_head=config.d_head)
    if config.position == "alibi":
        return partial(_bias, n_heads=config.n_heads)
    return None


def _rotation(x: Tensor, *, d_head: int) -> dict[str, Tensor | Rotation]:
    return {"rotation": Rotation(x.size(1), d_head, x)}


def _bias(x: Tensor, *, n_heads: int) -> dict[str, Tensor | Rotation]:
    return {"bias": alibi_bias(n_heads, x.size(1), x)}


def _text_positions(position: str, d_model: int, length: int) -> nn.Module:
    if position == "sinusoidal":
        return FixedPositions(length, partial(sinusoidal, d_model=d_model))
    if position == "learned":
        return LearnedPositions(length, d_model)
    return NoPositions()


def _patch_positions(config: PatchConfig, side: int, length: int) -> nn.Module:
    if config.position == "learned":
        return LearnedPositions(length, config.d_model)
    if config.position == "sinusoidal":
        return FixedPositions(length, partial(sinusoidal, d_model=config.d_model))
    if config.position == "sinusoidal-2d":
        return FixedPositions(length, partial(_grid_positions, side=side, d_model=config.d_model))
    return NoPositions()


def _grid_positions(length: int, *, side: int, d_model: int) -> Tensor:
    grid = sinusoidal_2d(side, side, d_model)
    # a CLS token stands nowhere in the picture: it gets a row of zeros in front
    return nn.functional.pad(grid, (0, 0, length - side**2, 0))
