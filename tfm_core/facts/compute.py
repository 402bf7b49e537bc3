"""What a model computes: multiply-accumulates by part, for a batch and lengths.

Torch-free algebra. One multiply-accumulate (MAC) is 2 FLOPs. Counted are all matrix products, the
attention scores and weighted sums too; norms, activations and softmax are not, as in
``torch.utils.flop_counter``, which gives the same numbers (a test says so). Counted is the whole
forward pass: where only one token is read, training leaves the others out of the last block
(``unasked``).
"""

from __future__ import annotations

from dataclasses import replace

from tfm_core.anatomy import Lengths, anatomy, stacks
from tfm_core.choices.config import DEPTHS, ModelConfig, RecurrentConfig
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape

__all__ = ["PARTS", "Lengths", "grown", "layers", "lengths", "macs", "unasked"]

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


def lengths(config: ModelConfig, shape: Shape, src_len: int, tgt_len: int) -> Lengths:
    """Return how many tokens each stack sees; a picture has as many as patches."""
    return anatomy(config, shape).lengths(src_len, tgt_len)


def macs(
    config: ModelConfig, shape: Shape, *, batch: int = 1, src_len: int = 0, tgt_len: int = 0
) -> dict[str, int]:
    """Return the multiply-accumulates of one forward pass by part, those of PARTS in order."""
    found = anatomy(config, shape)
    sizes = found.at(src_len, tgt_len)
    counts = {work: batch * formula.value(sizes) for work, formula in found.macs.items()}
    return dict.fromkeys(PARTS, 0) | counts


def unasked(config: ModelConfig, shape: Shape) -> int:
    """Return the multiply-accumulates of one picture that a model with a CLS token leaves out.

    Behind its last block that token alone is read, so it alone asks there; keys and values are made
    of all. Who watches a pass sees all of it computed.
    """
    found = anatomy(config, shape)
    every, one = found.at(0, 0), found.at(0, 0, all_queries=False)
    return sum(formula.value(every) - formula.value(one) for formula in found.macs.values())


def layers(config: ModelConfig) -> tuple[int, int]:
    """Return how many encoder and decoder blocks a model has."""
    if isinstance(config, RecurrentConfig):
        return config.n_layers, config.n_layers
    found = {stack.name: stack.n_layers for stack in stacks(config)}
    return found.get("encoder", 0), found.get("decoder", 0)


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
