"""What a model computes: multiply-accumulates by part, for a batch and lengths.

Torch-free algebra. One multiply-accumulate (MAC) is 2 FLOPs. Counted are all matrix products, the
attention scores and weighted sums too; norms, activations and softmax are not, as in
``torch.utils.flop_counter``, which gives the same numbers (a test says so). Counted is the whole
forward pass: where only one token is read, training leaves the others out of the last block
(``unasked``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfm_core.config import (
    DEPTHS,
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape, patches_per_side
from tfm_core.facts import compute_recurrent as recurrent
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.projections import PROJECTIONS
from tfm_core.variants.stems import STEMS, Cut

PARTS = (
    "embedding",
    "recurrence",
    "projections",
    "scores",
    "cross-attention",
    "feed-forward",
    "output",
)
"""Parts of the arithmetic, in the order of the forward pass; ``scores`` are the products that grow
with the square of the length: queries times keys, and weights times values."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of one example that each stack sees; ``answers`` are those that get an output."""

    encoder: int
    decoder: int
    answers: int


def lengths(config: ModelConfig, shape: Shape, src_len: int, tgt_len: int) -> Lengths:
    """Return how many tokens each stack sees; a picture has as many as patches."""
    if isinstance(config, ViTConfig):
        assert isinstance(shape, ImageShape)
        patches = patches_per_side(shape.image_size, config.patch_size) ** 2
        return Lengths(patches + POOLINGS[config.pooling].has_cls, 0, 1)
    if isinstance(config, CaptionerConfig):
        assert isinstance(shape, CaptionShape)
        patches = patches_per_side(shape.image_size, config.patch_size) ** 2
        return Lengths(patches, tgt_len or shape.tgt_len, tgt_len or shape.tgt_len)
    if isinstance(config, (EncoderDecoderConfig, RecurrentConfig)):
        return Lengths(src_len, tgt_len, tgt_len)
    if isinstance(config, DecoderOnlyConfig):
        has_source = not isinstance(shape, TextShape) or shape.has_source
        return Lengths(0, has_source * src_len + tgt_len, tgt_len)
    if isinstance(shape, TextShape) and shape.is_label:
        return Lengths(src_len + shape.has_cls, 0, 1)
    return Lengths(max(src_len, tgt_len), 0, tgt_len)


def macs(
    config: ModelConfig, shape: Shape, *, batch: int = 1, src_len: int = 0, tgt_len: int = 0
) -> dict[str, int]:
    """Return the multiply-accumulates of one forward pass by part, those of PARTS in order."""
    counts = dict.fromkeys(PARTS, 0)
    if isinstance(config, RecurrentConfig):
        assert isinstance(shape, TextShape)
        counts |= recurrent.macs(config, shape, src_len, tgt_len)
        return {part: batch * count for part, count in counts.items()}
    seen = lengths(config, shape, src_len, tgt_len)
    d, tokens = config.d_model, seen.encoder
    n_encoder, n_decoder = layers(config)
    n_matrices = ACTIVATIONS[config.activation].n_matrices
    has_output = PROJECTIONS[config.projections].has_output
    for n, length in ((n_encoder, seen.encoder), (n_decoder, seen.decoder)):
        counts["projections"] += n * (3 + has_output) * length * d * d
        counts["scores"] += n * 2 * length * length * d
        counts["feed-forward"] += n * n_matrices * length * d * config.d_ff
    if isinstance(config, EncoderDecoderConfig | CaptionerConfig):
        projected = (1 + has_output) * seen.decoder * d * d + 2 * tokens * d * d
        counts["cross-attention"] = n_decoder * (projected + 2 * seen.decoder * tokens * d)
    counts["embedding"] = _embedding(config, shape)
    counts["output"] = _output(config, shape, seen)
    return {part: batch * count for part, count in counts.items()}


def unasked(config: ModelConfig, shape: Shape) -> int:
    """Return the multiply-accumulates of one picture that a model with a CLS token leaves out.

    Behind its last block that token alone is read, so it alone asks there; keys and values are made
    of all. Who watches a pass sees all of it computed.
    """
    if not isinstance(config, ViTConfig) or not POOLINGS[config.pooling].has_cls:
        return 0
    tokens, d = lengths(config, shape, 0, 0).encoder, config.d_model
    n_matrices = ACTIVATIONS[config.activation].n_matrices
    n_square = 1 + PROJECTIONS[config.projections].has_output  # of the query, and of the output
    of_one = n_square * d * d + 2 * tokens * d + n_matrices * d * config.d_ff
    return (tokens - 1) * of_one


def layers(config: ModelConfig) -> tuple[int, int]:
    """Return how many encoder and decoder blocks a model has."""
    if isinstance(config, EncoderDecoderConfig | CaptionerConfig):
        return config.n_encoder_layers, config.n_decoder_layers
    if isinstance(config, RecurrentConfig):
        return config.n_layers, config.n_layers
    return (0, config.n_layers) if isinstance(config, DecoderOnlyConfig) else (config.n_layers, 0)


GROWTH = ("length", "width", "depth")


def grown(config: ModelConfig, shape: Shape, axis: str, factor: int) -> tuple[ModelConfig, Shape]:
    """Return the model with ``factor`` times its width or depth, or of its picture's side.

    The length of a text is the caller's to multiply. Nothing is validated: sizes may go beyond what
    can be trained here.
    """
    if axis == "length" and isinstance(shape, ImageShape | CaptionShape):
        return config, replace(shape, image_size=shape.image_size * factor)
    if axis == "width":
        fields = type(config).model_fields
        sizes = [name for name in ("d_model", "n_heads", "d_ff") if name in fields]
        wide: dict[str, object] = {name: factor * getattr(config, name) for name in sizes}
        return config.model_copy(update=wide), shape
    if axis == "depth":
        names = [name for name in DEPTHS if hasattr(config, name)]
        return config.model_copy(update={n: factor * getattr(config, n) for n in names}), shape
    return config, shape


def cut_of(config: ViTConfig | CaptionerConfig, shape: Shape) -> Cut:
    """Return what the stem cuts, and into what."""
    assert isinstance(shape, ImageShape | CaptionShape)
    return Cut(shape.image_size, shape.channels, config.patch_size, config.d_model)


def _embedding(config: TransformerConfig, shape: Shape) -> int:
    if not isinstance(config, ViTConfig | CaptionerConfig):
        return 0  # a look-up
    return STEMS[config.stem].macs(cut_of(config, shape))


def _output(config: TransformerConfig, shape: Shape, seen: Lengths) -> int:
    if isinstance(shape, ImageShape):
        return config.d_model * shape.n_classes
    if isinstance(shape, TextShape) and shape.head == "states":
        return 0
    if isinstance(shape, TextShape) and shape.head == "pooler":
        return config.d_model**2
    words = shape.tgt_vocabulary
    if isinstance(shape, TextShape) and shape.is_label:
        words = shape.n_labels
        if shape.n_hidden:
            hidden = shape.n_hidden * (config.d_model + words)
            pooled = seen.encoder * config.d_model if not shape.has_cls else 0
            return pooled + hidden
    pooling = shape.pooling if isinstance(shape, TextShape) else None
    pooled = seen.encoder if pooling is not None and pooling.reads_padding else 0
    return (pooled + seen.answers * words) * config.d_model
