"""What stands before the stacks of a diagram: ids or a picture, embeddings, positions."""

from __future__ import annotations

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderOnlyConfig,
    TextModelConfig,
    ViTConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.inspect.diagram.drawing import Drawing
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS


def pooled(drawing: Drawing, x: str, shape: TextShape, length: int) -> str:
    """Draw how many vectors become one."""
    assert shape.pooling is not None
    pool = drawing.node("pool", shape.pooling.drawn.format(tokens="words"), "data")
    drawing.edge(x, pool, f"(B, {length}, {drawing.config.d_model})")
    return pool


def answer(drawing: Drawing, x: str, words: str, answers: int) -> None:
    """Draw the last layer and what comes out; words: the shape that goes in."""
    shape = drawing.shape
    if isinstance(shape, TextShape) and shape.head == "states":
        states = drawing.node("logits", "Vectors of all tokens", "data")
        drawing.edge(x, states, words)
        return
    label, out = _last_layer(drawing, answers)
    head = drawing.node("output", label, "output")
    drawing.edge(x, head, words)
    is_pooler = isinstance(shape, TextShape) and shape.head == "pooler"
    logits = drawing.node("logits", "Vector of the text" if is_pooler else "Logits", "data")
    drawing.edge(head, logits, out)


def _last_layer(drawing: Drawing, answers: int) -> tuple[str, str]:
    """Return the label of the last layer and the shape of what it says."""
    config, shape, d_model = drawing.config, drawing.shape, drawing.config.d_model
    if isinstance(shape, ImageShape):
        label = f"Linear\\n{d_model} x {shape.n_classes}{drawing.count('head')}"
        return label, f"(B, {shape.n_classes})"
    count = drawing.count("hidden", "output")
    if isinstance(shape, TextShape) and shape.head == "pooler":
        return f"Pooler: first token, tanh{count}", f"(B, {d_model})"
    if isinstance(shape, TextShape) and shape.is_label:
        through = f"{shape.n_hidden}, ReLU, x " if shape.n_hidden else ""
        label = f"Linear to the labels\\n{d_model} x {through}{shape.n_labels}{count}"
        return label, f"(B, {shape.n_labels})"
    if (
        isinstance(shape, TextShape)
        and isinstance(config, TextModelConfig)
        and config.is_tied(shape)
    ):
        count = "\\nthe embedding's matrix: tied" + count
    label = f"Linear\\n{d_model} x {shape.tgt_vocabulary:,}{count}"
    return label, f"(B, {answers}, {shape.tgt_vocabulary:,})"


SIDES = {"src": "Source ids", "tgt": "Target ids, shifted right"}


def what_is_read(config: object, shape: Shape, side: str, length: int, src_len: int) -> str:
    """Return what the ids of one side are in this model.

    length: of the sequence that goes in; src_len: of the source alone.
    """
    if isinstance(config, DecoderOnlyConfig) and isinstance(shape, TextShape):
        return "Source, then target ids" if shape.has_source else "Token ids"
    if not (isinstance(config, EncoderOnlyConfig) and isinstance(shape, TextShape)):
        return SIDES[side]
    if shape.has_cls:
        return "Token ids, CLS in front"
    if shape.head != "tokens":
        return "Token ids"
    if shape.mask_id:
        return "Token ids, some hidden"
    return "Source ids, then empty slots" if length > src_len else "Source ids"


def embedded(drawing: Drawing, side: str, length: int, src_len: int = 0) -> str:
    """Draw ids, embedding and positions of one side; return the last node."""
    config, shape = drawing.config, drawing.shape
    assert isinstance(shape, TextShape | CaptionShape)
    title = what_is_read(config, shape, side, length, src_len)
    ids = drawing.node(f"{side} ids", title, "data")
    name = f"{side}_embedding"
    is_scaled = isinstance(shape, CaptionShape) or shape.scale_embedding
    scale = f", times √{config.d_model}" if is_scaled else ""
    node = drawing.node(name, f"Embedding{scale}\\n{_table(drawing, side)}", "embedding")
    drawing.edge(ids, node, f"(B, {length})")
    node = positions(drawing, node, f"{side}_positions", length)
    if isinstance(shape, TextShape) and shape.n_segments:
        count = drawing.count("segments")
        segments = drawing.node("segments", f"Segments and norm{count}", "embedding")
        drawing.edge(node, segments, f"(B, {length}, {config.d_model})")
        return segments
    return node


def _table(drawing: Drawing, side: str) -> str:
    """Return the sizes of an embedding's table, or of both that one sequence needs."""
    config, shape, name = drawing.config, drawing.shape, f"{side}_embedding"
    d_model = config.d_model
    if isinstance(shape, CaptionShape):
        return f"{shape.tgt_vocabulary:,} x {d_model}{drawing.count(name)}"
    assert isinstance(shape, TextShape)
    if isinstance(config, DecoderOnlyConfig) and not shape.one_vocabulary:
        sizes = f"({shape.src_vocabulary:,} + {shape.tgt_vocabulary:,}) x {d_model}"
        return sizes + drawing.count(name, "tgt_embedding")
    words = shape.src_vocabulary if side == "src" else shape.tgt_vocabulary
    is_shared = side == "tgt" and shape.one_vocabulary
    count = "\\nshared with the source" if is_shared else drawing.count(name)
    return f"{words:,} x {d_model}{count}"


def positions(drawing: Drawing, node: str, name: str, length: int) -> str:
    """Draw what is added for positions, if anything; return the last node."""
    config = drawing.config
    position: str = config.position
    if isinstance(config, CaptionerConfig) and name == "tgt_positions":
        position = config.text_position
    kind = POSITIONS[position]
    if not kind.is_added:
        return node
    own = "positions" if isinstance(config, (DecoderOnlyConfig, ViTConfig)) else name
    label = f"+ positions\\n{kind.label.lower()}{drawing.count(own)}"
    added = drawing.node(name, label, "embedding")
    drawing.edge(node, added, f"(B, {length}, {config.d_model})")
    return added


def stem(
    drawing: Drawing, config: ViTConfig | CaptionerConfig, shape: ImageShape | CaptionShape
) -> str:
    """Draw the picture and its patches; return the last node."""
    image = drawing.node("image", "Picture", "data")
    label = f"{STEMS[config.stem].drawn} of {config.patch_size} x {config.patch_size}, projected"
    cut = drawing.node("stem", f"{label}{drawing.count('stem')}", "embedding")
    drawing.edge(image, cut, f"(B, {shape.channels}, {shape.image_size}, {shape.image_size})")
    return cut
