"""The architecture diagram of exactly one model, in DOT: blocks, residuals, shapes on the arrows.

Equal blocks of a stack are drawn once, in a frame that says how many there are, or one by one: all
of them, or a few and the rest in one box. The browser lays the DOT out, so no Graphviz is needed
here. Each node has its kind as its class, so that a page can give it the colours of its theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.choices import ACTIVATIONS, NORMS, PATCH_POSITIONS
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.inspect.compute import layers, lengths
from tfm_core.inspect.diagram_recurrent import recurrent
from tfm_core.inspect.drawing import Drawing, Look
from tfm_core.inspect.parameter_table import parameter_table

__all__ = ["Diagram", "Look", "diagram"]


@dataclass(frozen=True, slots=True)
class Diagram:
    """The DOT source, and the label of each of its nodes by the node's name, in drawing order."""

    dot: str
    nodes: dict[str, str]


def diagram(
    config: ModelConfig,
    shape: Shape,
    look: Look,
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
    d = config.d_model
    if isinstance(config, RecurrentConfig):
        last, words = recurrent(drawing, config, src_len, tgt_len)
    elif isinstance(config, ViTConfig):
        assert isinstance(shape, ImageShape)
        last, words = _vit(drawing, config, shape, seen.encoder)
    elif isinstance(config, CaptionerConfig):
        assert isinstance(shape, CaptionShape)
        read = _positions(drawing, _stem(drawing, config, shape), "positions", seen.encoder)
        memory = _stack(drawing, read, "encoder", seen.encoder, None, 0)
        start = _embedded(drawing, "tgt", seen.decoder)
        last = _stack(drawing, start, "decoder", seen.decoder, memory, seen.encoder)
        words = f"(B, {seen.answers}, {d})"
    else:
        assert isinstance(shape, TextShape)
        if isinstance(config, EncoderDecoderConfig):
            memory = _stack(
                drawing, _embedded(drawing, "src", src_len), "encoder", src_len, None, src_len
            )
            start = _embedded(drawing, "tgt", tgt_len)
            last = _stack(drawing, start, "decoder", tgt_len, memory, src_len)
        elif isinstance(config, DecoderOnlyConfig):
            start = _embedded(drawing, "src", seen.decoder)
            last = _stack(drawing, start, "decoder", seen.decoder, None, 0)
        else:
            start = _embedded(drawing, "src", seen.encoder)
            last = _stack(drawing, start, "encoder", seen.encoder, None, 0)
            if shape.is_label:
                last = _pooled(drawing, last, shape, seen.encoder)
        words = f"(B, {seen.answers}, {d})"
    _answer(drawing, last, words, seen.answers)
    return Diagram(drawing.document(), drawing.nodes)


def _embedded(drawing: Drawing, side: str, length: int) -> str:
    """Draw ids, embedding and positions of one side; return the last node."""
    config, shape = drawing.config, drawing.shape
    assert isinstance(shape, TextShape | CaptionShape)
    is_shared = isinstance(shape, TextShape) and shape.one_vocabulary
    words = shape.tgt_vocabulary
    if isinstance(shape, TextShape) and side == "src":
        words = shape.src_vocabulary
    title = {"src": "Source ids", "tgt": "Target ids, shifted right"}[side]
    if isinstance(config, DecoderOnlyConfig):
        has_source = not isinstance(shape, TextShape) or shape.has_source
        title = "Source, then target ids" if has_source else "Token ids, from <bos> on"
    if isinstance(shape, TextShape) and shape.head == "cls":
        title = "Source ids, CLS in front"
    ids = drawing.node(f"{side} ids", title, "data")
    name = f"{side}_embedding"
    count = drawing.count(name)
    if isinstance(config, DecoderOnlyConfig) and not is_shared:
        assert isinstance(shape, TextShape)
        count = drawing.count(name, "tgt_embedding")
        words_label = f"({shape.src_vocabulary:,} + {shape.tgt_vocabulary:,}) x {config.d_model}"
    else:
        words_label = f"{words:,} x {config.d_model}"
        if side == "tgt" and is_shared:
            count = "\\nshared with the source"
    is_scaled = isinstance(shape, CaptionShape) or shape.scale_embedding
    scale = f", times √{config.d_model}" if is_scaled else ""
    node = drawing.node(name, f"Embedding{scale}\\n{words_label}{count}", "embedding")
    drawing.edge(ids, node, f"(B, {length})")
    node = _positions(drawing, node, f"{side}_positions", length)
    if isinstance(shape, TextShape) and shape.n_segments:
        segments = drawing.node(
            "segments", f"Segments and norm{drawing.count('segments')}", "embedding"
        )
        drawing.edge(node, segments, f"(B, {length}, {config.d_model})")
        return segments
    return node


def _positions(drawing: Drawing, node: str, name: str, length: int) -> str:
    config = drawing.config
    position: str = config.position
    if isinstance(config, CaptionerConfig) and name == "tgt_positions":
        position = config.text_position
    if position in {"none", "rotary", "alibi"}:
        return node
    own = "positions" if isinstance(config, (DecoderOnlyConfig, ViTConfig)) else name
    label = f"+ positions\\n{PATCH_POSITIONS[position].label.lower()}{drawing.count(own)}"
    added = drawing.node(name, label, "embedding")
    drawing.edge(node, added, f"(B, {length}, {config.d_model})")
    return added


def _stack(
    drawing: Drawing, start: str, name: str, length: int, memory: str | None, memory_len: int
) -> str:
    """Draw a stack, folded or not; return its last node."""
    config = drawing.config
    assert not isinstance(config, RecurrentConfig)
    n_encoder, n_decoder = layers(config)
    n = n_encoder if name == "encoder" else n_decoder
    x = start
    for first, last in _groups(n, drawing.opened):
        if drawing.opened and last > first:
            x = _closed(drawing, x, name, range(first, last + 1), length)
            if memory is not None:
                drawing.edge(memory, x, f"memory (B, {memory_len}, {config.d_model})")
            continue
        title = f"{name.capitalize()} block" + (f" {first + 1}" if drawing.opened else "")
        title += f"  x {n}" if n > 1 and not drawing.opened else ""
        drawing.lines.append(f'subgraph "cluster {name} {first}" {{')
        drawing.lines.append(
            f'label="{title}"; labeljust=l; style="rounded,filled"; fontsize=13; class="{name}"; '
            f'color="{drawing.look.line}"; fillcolor="{drawing.look.fills[name]}";'
        )
        x = _block(drawing, x, f"{name}.layers.{first}", length, memory, memory_len)
        drawing.lines.append("}")
    if config.norm_first:
        label = f"{NORMS[config.norm].label}{drawing.count(f'{name}.final_norm')}"
        final = drawing.node(f"{name} final", label, "norm")
        drawing.edge(x, final, f"(B, {length}, {config.d_model})")
        return final
    return x


def _groups(n: int, opened: range) -> list[tuple[int, int]]:
    """Return first and last of each group of blocks: one by one where opened, else together."""
    found: list[tuple[int, int]] = []
    for place in range(n):
        if found and place not in opened and found[-1][1] not in opened:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


def _closed(drawing: Drawing, x: str, name: str, places: range, length: int) -> str:
    """Draw blocks that are not opened as one box; return it."""
    first, last = places[0], places[-1]
    count = sum(
        row.n_parameters
        for row in parameter_table(drawing.config, drawing.shape).rows
        for place in places
        if row.module.startswith(f"{name}.layers.{place}.")
    )
    words = f"{name.capitalize()} blocks {first + 1} to {last + 1}\\n{len(places)} like the others"
    node = drawing.node(f"{name}.layers.{first}-{last}", f"{words}\\n{count:,} parameters", name)
    drawing.edge(x, node, f"(B, {length}, {drawing.config.d_model})")
    return node


def _block(
    drawing: Drawing, x: str, name: str, length: int, memory: str | None, memory_len: int
) -> str:
    config = drawing.config
    assert not isinstance(config, RecurrentConfig)
    width = f"(B, {length}, {config.d_model})"
    for part, label in _sublayers(config, name, memory is not None):
        kind = "feed-forward" if part == "feed_forward" else "attention"
        kind = "cross" if part == "cross_attention" else kind
        text = f"{label}{drawing.count(f'{name}.{part}')}"
        node, total = f"{name}.{part}", f"{name}.{part} +"
        norm = f"{name}.{part} norm"
        drawing.node(node, text, kind)
        drawing.plus(total)
        drawing.node(norm, NORMS[config.norm].label, "norm")
        if config.norm_first:
            drawing.edge(x, norm, width)
            drawing.edge(norm, node)
        else:
            drawing.edge(x, node, width)
        drawing.edge(node, total)
        drawing.edge(x, total, dashed=True)
        if part == "cross_attention" and memory is not None:
            drawing.edge(memory, node, f"memory (B, {memory_len}, {config.d_model})")
        x = total
        if not config.norm_first:
            drawing.edge(total, norm)
            x = norm
    return x


def _sublayers(config: TransformerConfig, name: str, has_cross: bool) -> Iterator[tuple[str, str]]:
    heads = f"{config.n_heads} heads x {config.d_head}"
    is_causal = name.startswith("decoder")
    notes = ["causal"] if is_causal else []
    notes += [config.position] if config.position in {"rotary", "alibi"} else []
    window = getattr(config, "window", 0)
    notes += [f"window {window}"] if window else []
    words = f" ({', '.join(notes)})" if notes else ""
    yield "self_attention", f"Self-attention{words}\\n{heads}"
    if has_cross:
        yield "cross_attention", f"Cross-attention\\n{heads}"
    activation = ACTIVATIONS[config.activation].label
    sizes = f"{config.d_model} → {config.d_ff} → {config.d_model}"
    yield "feed_forward", f"Feed-forward, {activation}\\n{sizes}"


def _stem(
    drawing: Drawing, config: ViTConfig | CaptionerConfig, shape: ImageShape | CaptionShape
) -> str:
    """Draw the picture and its patches; return the last node."""
    image = drawing.node("image", "Picture", "data")
    kind = "3x3 convolution, then patches" if config.stem == "conv" else "Patches"
    label = f"{kind} of {config.patch_size} x {config.patch_size}, projected"
    stem = drawing.node("stem", f"{label}{drawing.count('stem')}", "embedding")
    drawing.edge(image, stem, f"(B, {shape.channels}, {shape.image_size}, {shape.image_size})")
    return stem


def _vit(drawing: Drawing, config: ViTConfig, shape: ImageShape, n: int) -> tuple[str, str]:
    """Draw picture, stem, CLS, positions, stack and pooling; return last node and its shape."""
    d, has_cls = config.d_model, config.pooling == "cls"
    side = shape.image_size // config.patch_size
    stem = _stem(drawing, config, shape)
    if has_cls:
        cls = drawing.node("cls", f"CLS token in front\\n{d} parameters", "embedding")
        drawing.edge(stem, cls, f"(B, {side**2}, {d})")
        stem = cls
    start = _positions(drawing, stem, "positions", n)
    x = _stack(drawing, start, "encoder", n, None, 0)
    pool = drawing.node("pool", "Take the CLS token" if has_cls else "Mean of all patches", "data")
    drawing.edge(x, pool, f"(B, {n}, {d})")
    return pool, f"(B, {d})"


def _pooled(drawing: Drawing, x: str, shape: TextShape, length: int) -> str:
    """Draw how many vectors become one."""
    label = "Take the CLS token" if shape.head == "cls" else "Mean of all words"
    pool = drawing.node("pool", label, "data")
    drawing.edge(x, pool, f"(B, {length}, {drawing.config.d_model})")
    return pool


def _answer(drawing: Drawing, x: str, words: str, answers: int) -> None:
    config, shape = drawing.config, drawing.shape
    if isinstance(shape, ImageShape):
        label, out = f"Linear\\n{config.d_model} x {shape.n_classes}", f"(B, {shape.n_classes})"
        label += drawing.count("head")
    elif isinstance(shape, TextShape) and shape.head == "pooler":
        label = f"Pooler: first token, tanh{drawing.count('output')}"
        out = f"(B, {config.d_model})"
    elif isinstance(shape, TextShape) and shape.is_label:
        label = f"Linear\\n{config.d_model} x {shape.n_labels}{drawing.count('output')}"
        out = f"(B, 1, {shape.n_labels})"
    else:
        count = drawing.count("output") or "\\nthe embedding's matrix: tied"
        label = f"Linear\\n{config.d_model} x {shape.tgt_vocabulary:,}{count}"
        out = f"(B, {answers}, {shape.tgt_vocabulary:,})"
    head = drawing.node("output", label, "output")
    drawing.edge(x, head, words)
    is_pooler = isinstance(shape, TextShape) and shape.head == "pooler"
    logits = drawing.node("logits", "Vector of the text" if is_pooler else "Logits", "data")
    drawing.edge(head, logits, out)
