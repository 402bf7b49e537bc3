"""Texts that people type or paste, and how long they may be.

A widget with ``max_chars`` refuses a longer paste without a word; a page keeps it and says why.
"""

from __future__ import annotations

from pages.i18n import _


def within(text: str | None, most: int) -> str:
    """Return a text of at most so many characters. Raises ValueError, in a sentence, for more."""
    text = text or ""
    if len(text) > most:
        words = _("The text has {n} characters; at most {most} are read here: leave some out.")
        raise ValueError(words.format(n=f"{len(text):,}", most=f"{most:,}"))
    return text
