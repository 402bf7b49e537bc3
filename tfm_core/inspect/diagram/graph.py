"""The architecture diagram of exactly one model, in DOT: blocks, residuals, shapes on the arrows.

Equal blocks of a stack are drawn once, in a frame that says how many there are, or one by one: all
of them, or a few and the rest in one box. The browser lays the DOT out, so no Graphviz is needed
here. Each node has its kind as its class, so that a page can give it the colours of its theme.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import (
    CaptionerConfig,
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
from tfm_core.variants.families import FAMILIES
from tfm_core.variants.poolings import POOLINGS

__all__ = ["Diagram", "DiagramColours", "diagram"]


@dataclass(frozen=True, slots=True)
class Diagram:
    """The DOT source, and the label of each of its nodes by the node's name, in drawing order.

    across: tail and head of the arrows from one column to the other, drawn when it is laid out.
    """

    dot: str
    nodes: dict[str, str]
    across: tuple[tuple[str, str], ...] = ()


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
    last, words = FAMILIES[config.family].diagram()(drawing, seen, src_len, tgt_len)
    answer(drawing, last, words, seen.answers)
    return Diagram(drawing.document(), drawing.nodes, tuple(drawing.across))


def encoder_decoder(drawing: Drawing, seen: Lengths, src_len: int, tgt_len: int) -> tuple[str, str]:
    """Draw two stacks of words; return the last node and the shape of what leaves it."""
    return _pair(drawing, embedded(drawing, "src", src_len), seen), _words(drawing, seen)


def encoder_only(drawing: Drawing, seen: Lengths, src_len: int, tgt_len: int) -> tuple[str, str]:
    """Draw a stack that sees all words, and the pooling where a label is asked for."""
    shape = drawing.shape
    assert isinstance(shape, TextShape)
    start = embedded(drawing, "src", seen.encoder, src_len)
    last = stack(drawing, start, "encoder", seen.encoder, None)
    last = pooled(drawing, last, shape, seen.encoder) if shape.is_label else last
    return last, _words(drawing, seen)


def decoder_only(drawing: Drawing, seen: Lengths, src_len: int, tgt_len: int) -> tuple[str, str]:
    """Draw a stack that sees the words so far."""
    start = embedded(drawing, "src", seen.decoder)
    return stack(drawing, start, "decoder", seen.decoder, None), _words(drawing, seen)


def captioner(drawing: Drawing, seen: Lengths, src_len: int, tgt_len: int) -> tuple[str, str]:
    """Draw a stack of patches and one of words that looks back at it."""
    config, shape = drawing.config, drawing.shape
    assert isinstance(config, CaptionerConfig)
    assert isinstance(shape, CaptionShape)
    read = positions(drawing, stem(drawing, config, shape), "positions", seen.encoder)
    return _pair(drawing, read, seen), _words(drawing, seen)


def recurrent_pair(drawing: Drawing, seen: Lengths, src_len: int, tgt_len: int) -> tuple[str, str]:
    """Draw two recurrent networks."""
    assert isinstance(drawing.config, RecurrentConfig)
    return recurrent(drawing, drawing.config, src_len, tgt_len)


def _words(drawing: Drawing, seen: Lengths) -> str:
    return f"(B, {seen.answers}, {drawing.config.d_model})"


def _pair(drawing: Drawing, read: str, seen: Lengths) -> str:
    """Draw an encoder behind ``read`` and the decoder that looks back at it; return the last."""
    last = stack(drawing, read, "encoder", seen.encoder, None)
    width = drawing.config.d_model
    memory = drawing.words("memory", f"memory\\n(B, {seen.encoder}, {width})")
    drawing.edge(last, memory, has_head=False)
    start = embedded(drawing, "tgt", seen.decoder)
    is_pictured = isinstance(drawing.config, CaptionerConfig)
    drawing.side_by_side("image" if is_pictured else "src ids", "tgt ids")
    return stack(drawing, start, "decoder", seen.decoder, memory)


def vit(drawing: Drawing, seen: Lengths, src_len: int, tgt_len: int) -> tuple[str, str]:
    """Draw picture, stem, CLS, positions, stack and pooling; return last node and its shape."""
    config, shape, n = drawing.config, drawing.shape, seen.encoder
    assert isinstance(config, ViTConfig)
    assert isinstance(shape, ImageShape)
    d, pooling = config.d_model, POOLINGS[config.pooling]
    side = patches_per_side(shape.image_size, config.patch_size)
    x = stem(drawing, config, shape)
    if pooling.has_cls:
        cls = drawing.node("cls", f"CLS token in front\\n{d} parameters", "embedding")
        drawing.edge(x, cls, f"(B, {side**2}, {d})")
        x = cls
    start = positions(drawing, x, "positions", n)
    x = stack(drawing, start, "encoder", n, None)
    pool = drawing.node("pool", pooling.drawn.format(tokens="patches"), "data")
    drawing.edge(x, pool, f"(B, {n}, {d})")
    return pool, f"(B, {d})"
