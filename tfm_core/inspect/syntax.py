"""Python source: of what is there, and as its syntax tree; by one thread at a time.

Two that make trees at once break each other in Python 3.11, "SystemError: AST constructor recursion
depth mismatch", and ``inspect`` makes one to find a class.
"""

from __future__ import annotations

import ast
import inspect
import threading
from collections.abc import Callable
from typing import Any

_ALONE = threading.Lock()


def statements(text: str) -> list[ast.stmt]:
    """Return the statements of a source. Raises SyntaxError."""
    with _ALONE:
        return ast.parse(text).body


def source(of: Callable[..., Any] | type) -> str:
    """Return the lines of a function or class. Raises OSError where there is no file."""
    with _ALONE:
        return inspect.getsource(of)
