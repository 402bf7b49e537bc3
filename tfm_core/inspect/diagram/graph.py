"""The architecture diagram of exactly one model, in DOT: blocks, residuals, shapes on the arrows.

Equal blocks of a stack are drawn once, in a frame that says how many there are, or one by one: all
of them, or a few and the rest in one box. The browser lays the DOT out, so no Graphviz is needed
here. Each node has its kind as its class, so that a page can give it the colours of its theme.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    ModelConfig,
    RecurrentConfig,
    ViTConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape, patches_per_side
from tfm_core.facts.compute import Lengths, lengths
from tfm_core.inspect.diagram.blocks import stack
from tfm_core.inspect.diagram.drawing import DiagramColours, Drawing
from tfm_core.inspect.diagram.inputs import answer, embedded, pooled, positions, stem
from tfm_core.inspect.diagram.recurrent import recurrent
from tfm_core.variants.poolings import POOLINGS

__all__ = ["Diagram", "DiagramColours", "diagram"]


@dataclass(frozen=True, slots=True)
class Diagram:
    """The DOT source, and the label of each of its nodes by the node's name, in drawing order."""

    dot: str
    nodes: dict[str, str]


def diagram(
    config: ModelConfig,
    shape: Shape,
    look: DiagramColours,
    *,
    src_len: int = 0,
    tgt_len: int = 0,
    opened: range = range(0),
) -> Diagram:
    """Return the diagram. Shapes are (B, tokens, width), B the batch.

    opened: the blocks of each stack to draw one by one, from 0; those around them share a box, and
    where it is empty the blocks are drawn once.
    """
    drawing = Drawing(config, shape, look, opened)
    seen = lengths(config, shape, src_len, tgt_len)
    words = f"(B, {seen.answers}, {config.d_model})"
    if isinstance(config, RecurrentConfig):
        last, words = recurrent(drawing, config, src_len, tgt_len)
    elif isinstance(config, ViTConfig):
        last, words = _vit(drawing, config, seen.encoder)
    elif isinstance(config, CaptionerConfig):
        assert isinstance(shape, CaptionShape)
        read = positions(drawing, stem(drawing, config, shape), "positions", seen.encoder)
        last = _pair(drawing, read, seen)
    elif isinstance(config, EncoderDecoderConfig):
        last = _pair(drawing, embedded(drawing, "src", src_len), seen)
    elif isinstance(config, DecoderOnlyConfig):
        start = embedded(drawing, "src", seen.decoder)
        last = stack(drawing, start, "decoder", seen.decoder, None, 0)
    else:
        assert isinstance(shape, TextShape)
        start = embedded(drawing, "src", seen.encoder, src_len)
        last = stack(drawing, start, "encoder", seen.encoder, None, 0)
        last = pooled(drawing, last, shape, seen.encoder) if shape.is_label else last
    answer(drawing, last, words, seen.answers)
    return Diagram(drawing.document(), drawing.nodes)


def _pair(drawing: Drawing, read: str, seen: Lengths) -> str:
    """Draw an encoder behind ``read`` and the decoder that looks back at it; return the last."""
    memory = stack(drawing, read, "encoder", seen.encoder, None, 0)
    start = embedded(drawing, "tgt", seen.decoder)
    return stack(drawing, start, "decoder", seen.decoder, memory, seen.encoder)


def _vit(drawing: Drawing, config: ViTConfig, n: int) -> tuple[str, str]:
    """Draw picture, stem, CLS, positions, stack and pooling; return last node and its shape."""
    shape, d, pooling = drawing.shape, config.d_model, POOLINGS[config.pooling]
    assert isinstance(shape, ImageShape)
    side = patches_per_side(shape.image_size, config.patch_size)
    x = stem(drawing, config, shape)
    if pooling.has_cls:
        cls = drawing.node("cls", f"CLS token in front\\n{d} parameters", "embedding")
        drawing.edge(x, cls, f"(B, {side**2}, {d})")
        x = cls
    start = positions(drawing, x, "positions", n)
    x = stack(drawing, start, "encoder", n, None, 0)
    pool = drawing.node("pool", pooling.drawn.format(tokens="patches"), "data")
    drawing.edge(x, pool, f"(B, {n}, {d})")
    return pool, f"(B, {d})"
