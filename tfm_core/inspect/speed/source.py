"""The source of a function or class by its path, read from its file: nothing is imported."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

import tfm_core
from tfm_core.inspect.syntax import statements


@lru_cache(maxsize=64)
def source_of(path: str) -> str:
    """Return the lines of ``module:name``, decorators included. Raises KeyError without such."""
    module, _colon, name = path.partition(":")
    root = Path(tfm_core.__file__).resolve().parent.parent
    text = root.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    for node in statements(text):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise KeyError(path)
