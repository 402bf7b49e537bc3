"""What belongs to a node of the architecture diagram: its parameters and its code."""

from __future__ import annotations

import ast
from functools import lru_cache

from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.facts.own_names import own_name, own_names
from tfm_core.facts.parameter_table import Row, parameter_table
from tfm_core.inspect.diagram.drawing import Node
from tfm_core.inspect.source.file import source_code
from tfm_core.inspect.syntax import statements


def parameters_of(node: Node, config: ModelConfig, shape: Shape) -> tuple[Row, ...]:
    """Return the rows of the parameter table, folded or not, that belong to a node."""
    names = own_names(config, shape)
    modules = {own_name(path, names) for path in node.modules}
    table = parameter_table(config, shape)
    rows = {row.module: row for row in (*table.folded, *table.rows)}
    return tuple(row for name, row in rows.items() if name in modules)


def code_of(node: Node, config: ModelConfig, shape: Shape) -> str:
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
