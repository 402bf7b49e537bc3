"""The one place where configs become modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tfm_core.choices.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    RecurrentConfig,
    TextModelConfig,
    ViTConfig,
)
from tfm_core.choices.config.shape import (
    CLS_ID,
    CaptionShape,
    ImageShape,
    Shape,
    TextShape,
    patches_per_side,
)
from tfm_core.choices.mistakes import make
from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.stems import POOLINGS, STEMS
from tfm_core.layers import recorder
from tfm_core.layers.fast import Stack
from tfm_core.layers.feed_forward import make_norm
from tfm_core.layers.recurrent import RecurrentAttention
from tfm_core.models.build_stack import added_positions, attention_of, stack
from tfm_core.models.ends import LabelOutput, Pooler, Segments, Side, TokenEmbedding
from tfm_core.models.pictures import Captioner, LookingStack, VisionTransformer
from tfm_core.models.recurrent import (
    AdditiveDecoder,
    LuongDecoder,
    Reader,
    RecurrentEncoder,
    RecurrentTranslator,
)
from tfm_core.models.text import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    TextModel,
    TextPooling,
)

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
    """Build any model; inside ``init_on_meta()`` it takes no memory and almost no time."""
    return BUILDERS[config.family](config, shape)


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
    src_positions, tgt_positions = positions(), positions()
    if shape.embedding_norm:
        for each in (src_positions, tgt_positions):
            each.norm = make_norm(config.norm, config.d_model, config.norm_eps)
            each.register_forward_hook(_normed)
    encoder = stack(config, config.n_encoder_layers)
    decoder = stack(config, config.n_decoder_layers, has_cross=True, is_causal=True)
    model = EncoderDecoder(
        Side(src, encoder, src_positions),
        Side(tgt, decoder, tgt_positions),
        output,
        pad_id=shape.pad_id,
        dropout=config.dropout,
    )
    return _finished(model, config, shape, tgt)


def _normed(positions: nn.Module, inputs: object, placed: Tensor) -> Tensor:
    """Return what positions made, through their norm; a forward hook."""
    out: Tensor = positions.get_submodule("norm")(placed)
    recorder.record(positions, normed=out)
    return out


def build_encoder_only(config: EncoderOnlyConfig, shape: TextShape) -> EncoderOnly:
    """Build a BERT, with what it has at its ends."""
    output, embedding, positions = _ends(config, shape)
    src, added = embedding(shape.src_vocabulary), positions()
    pooling = None
    if shape.pooling is not None:
        cls_id = CLS_ID if shape.pooling.has_cls else None
        pooling = TextPooling(resolve(shape.pooling.layer), cls_id)
    model = EncoderOnly(
        Side(src, stack(config, config.n_layers), added),
        _reader(config, shape, output),
        pad_id=shape.pad_id,
        dropout=config.dropout,
        segments=_segments(config, shape),
        pooling=pooling,
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
    model.bos_id, model.eos_id = shape.bos_id, shape.eos_id
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
    stem = _stem(config, shape.channels)
    positions = added_positions(config.position, length=side**2, d_model=d_model, side=side)
    encoder = Stack([], None) if shape.has_regions else stack(config, config.n_encoder_layers)
    picture = Side(stem, encoder, positions)
    embedding = TokenEmbedding(shape.tgt_vocabulary, d_model)
    positions = added_positions(config.text_position, length=shape.tgt_len, d_model=d_model)
    has_cross = not shape.has_regions
    decoder = stack(config, config.n_decoder_layers, has_cross=has_cross, is_causal=True)
    looking = LookingStack(decoder, attention_of(config)) if shape.has_regions else decoder
    model = Captioner(
        picture,
        Side(embedding, looking, positions),
        nn.Linear(d_model, shape.tgt_vocabulary, bias=config.bias),
        pad_id=shape.pad_id,
        dropout=config.dropout,
    )
    make(config.mistakes, model)
    return model


def _stem(config: ViTConfig | CaptionerConfig, channels: int) -> nn.Module:
    stem: nn.Module = resolve(STEMS[config.stem].layer)(channels, config.patch_size, config.d_model)
    return stem


def build_recurrent(config: RecurrentConfig, shape: TextShape) -> RecurrentTranslator:
    """Build an encoder-decoder of recurrent cells with attention."""
    d, n = config.d_model, config.n_layers
    readers = [Reader(config.cell, d, is_bidirectional=config.is_bidirectional) for _ in range(n)]
    src = TokenEmbedding(shape.src_vocabulary, d)
    tgt = src if shape.one_vocabulary else TokenEmbedding(shape.tgt_vocabulary, d)
    score = ALIGNMENT_SCORES[config.attention]
    attention = RecurrentAttention(resolve(score.layer)(d))
    decoder = AdditiveDecoder if score.attends_before_step else LuongDecoder
    return RecurrentTranslator(
        Side(src, RecurrentEncoder(readers, config.dropout)),
        Side(tgt, decoder(config.cell, d, n, attention)),
        bridge=nn.Linear(d, n * d),
        readout=nn.Linear(2 * d, d, bias=False),
        output=nn.Linear(d, shape.tgt_vocabulary, bias=shape.output_bias),
        pad_id=shape.pad_id,
        has_cells=CELLS[config.cell].has_memory,
        dropout=config.dropout,
    )


_FILLING = {"normal_", "uniform_", "trunc_normal_"}


class _NothingDrawn(TorchFunctionMode):
    """Makes empty tensors on ``meta``, and skips initialisation."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty and kwargs.get("device") is None:
            return func(*args, **{**kwargs, "device": "meta"})
        if getattr(func, "__name__", "") in _FILLING:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def init_on_meta() -> Iterator[None]:
    """Build models without weights: no memory is taken, no number drawn. Position tables are real.

    Weights are on the ``meta`` device; to run such a model, move it there: ``model.to("meta")``.
    ``torch.device("meta")`` alone would make PyTorch import its compiler, which takes longer than
    all else.
    """
    with torch.device("cpu"), _NothingDrawn():
        yield


BUILDERS: dict[str, Callable[..., Model]] = {
    "encoder-decoder": build_encoder_decoder,
    "encoder-only": build_encoder_only,
    "decoder-only": build_decoder_only,
    "vit": build_vit,
    "captioner": build_captioner,
    "recurrent": build_recurrent,
}
"""How each of ``variants.families`` is built."""
