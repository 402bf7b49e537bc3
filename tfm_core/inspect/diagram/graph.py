"""The architecture diagram of exactly one model, in DOT: blocks, residuals, shapes on the arrows.

It is a loop over the parts of the model. Equal blocks of a stack are drawn once, in a frame that
says how many there are, or one by one: all of them, or a few and the rest in one box. The browser
lays the DOT out, so no Graphviz is needed here. Each node has its kind as its class, so that a page
can give it the colours of its theme.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tfm_core.anatomy import Part, anatomy
from tfm_core.anatomy.names import Scheme
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.facts.parameter_table import ParameterRow, parameter_table
from tfm_core.inspect.diagram import blocks, ends, recurrent
from tfm_core.inspect.diagram.drawing import DiagramColours, DiagramNode, Drawing
from tfm_core.inspect.source.file import source_code
from tfm_core.inspect.syntax import statements

__all__ = ["Diagram", "DiagramColours", "diagram"]

_DRAWN: dict[str, Callable[[Drawing, Part], None]] = {
    "input": ends.model_input,
    "stem": ends.stem,
    "TokenEmbedding": ends.embedding,
    "VisionTransformer": ends.cls,
    "positions": ends.positions,
    "segments": ends.segments,
    "Stack": blocks.stack,
    "RecurrentEncoder": recurrent.encoder,
    "AdditiveDecoder": recurrent.decoder,
    "LuongDecoder": recurrent.decoder,
    "pooling": ends.pooling,
    "head": ends.head,
    "answer": ends.answer,
}
"""Layer or kind of a part -> what draws it. Others are drawn with these, or not at all."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """The DOT source, and its nodes by their names, in drawing order.

    across: tail and head of the arrows from one column to the other, drawn when it is laid out.
    reads: of each node those whose arrows end there, and what is written on the arrows.
    """

    dot: str
    nodes: Mapping[str, DiagramNode]
    across: tuple[tuple[str, str], ...] = ()
    reads: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


def diagram(
    config: ModelConfig,
    shape: Shape,
    look: DiagramColours,
    *,
    src_len: int = 0,
    tgt_len: int = 0,
    opened: range = range(0),
    say: Callable[[str], str] = str,
) -> Diagram:
    """Return the diagram. Shapes are (B, tokens, width), B the batch.

    opened: the blocks of each stack to draw one by one, from 0; those around them share a box, and
    where it is empty the blocks are drawn once. say: translates what is drawn.
    """
    model = anatomy(config, shape)
    drawing = Drawing(model, model.at(src_len, tgt_len), src_len, look, opened, say)
    for part in model.parts:
        draw = _DRAWN.get(part.layer) or _DRAWN.get(part.kind)
        if draw is not None:
            draw(drawing, part)
    reads = {name: drawing.reads(name) for name in drawing.nodes}
    return Diagram(drawing.document(), drawing.nodes, tuple(drawing.across), reads)


def parameters_of(
    node: DiagramNode, config: ModelConfig, shape: Shape, scheme: Scheme = "ours"
) -> tuple[ParameterRow, ...]:
    """Return the rows of the parameter table, of blocks in one or not, that belong to a node."""
    modules = {path or "cls" for path in node.modules}
    table = parameter_table(config, shape, scheme)
    rows = {(row.path, row.matrix): row for row in (*table.by_block, *table.rows)}
    return tuple(row for (path, _matrix), row in rows.items() if path in modules)


def code_of(node: DiagramNode, config: ModelConfig, shape: Shape) -> str:
    """Return the classes and functions of the generated file that make a node."""
    definitions = _definitions(config, shape)
    return "\n\n\n".join(definitions[name] for name in node.code if name in definitions)


@lru_cache(maxsize=64)
def _definitions(config: ModelConfig, shape: Shape) -> dict[str, str]:
    text = source_code(config, shape)
    lines = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in statements(text)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
