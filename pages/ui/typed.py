"""Texts that people type or paste: how long they may be, and how they are shown as they stand.

A widget with ``max_chars`` refuses a longer paste without a word; a page keeps it and says why.
"""

from __future__ import annotations

import re

from pages.i18n import _

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


def within(text: str | None, most: int) -> str:
    """Return a text of at most so many characters. Raises ValueError, in a sentence, for more."""
    text = text or ""
    if len(text) > most:
        words = _("The text has {n} characters; at most {most} are read here: leave some out.")
        raise ValueError(words.format(n=f"{len(text):,}", most=f"{most:,}"))
    return text
