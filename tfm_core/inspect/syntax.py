"""Python source and its syntax tree, for one thread at a time.

Two threads that build trees at once break each other in Python 3.11 ("SystemError: AST constructor
recursion depth mismatch"), and ``inspect`` builds one to find a class.
"""

from __future__ import annotations

import ast
import inspect
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import tfm_core

_ALONE = threading.Lock()


def statements(text: str) -> list[ast.stmt]:
    """Return the statements of a source. Raises SyntaxError."""
    with _ALONE:
        return ast.parse(text).body


def source(of: Callable[..., Any] | type) -> str:
    """Return the lines of a function or class. Raises OSError where there is no file."""
    with _ALONE:
        return inspect.getsource(of)


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
