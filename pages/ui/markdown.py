"""Text that people type or choose, so that Markdown shows it as it stands."""

from __future__ import annotations

import re

ALPHABET = "\\`*_[]$~<>#:&|{}"
"""Marks that mean something wherever they stand in a line."""

_INSIDE = re.compile(f"[{re.escape(ALPHABET)}]")
_AT_THE_START = re.compile(r"^[ \t]*(\d*)([-+=.)])", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


def escape(text: str) -> str:
    """Return text that Markdown, as Streamlit reads it, shows as it stands.

    A list, a numbered one or a heading's underline begins at the start of a line only, so ``v1.2``
    and ``well-known`` stay as they are.
    """
    marked = _INSIDE.sub(r"\\\g<0>", _INDENT.sub("", text))
    return _AT_THE_START.sub(r"\1\\\2", marked)
