"""Texts that people type or paste: their limits, and how they are escaped.

A widget with ``max_chars`` cuts a longer paste silently; pages keep it and say why it is too long.
"""

from __future__ import annotations

import re

import streamlit as st

from pages.i18n import _
from tfm_core.choices.config.corpus_tasks import MAX_CHARACTERS
from tfm_core.sentences import Sentence

MAX_MEGABYTES = 20
"""Of one uploaded file; equals ``server.maxUploadSize``."""

ALPHABET = "\\`*_[]$~<>#:&|{}"
"""Marks that mean something wherever they stand in a line."""

_INSIDE = re.compile(f"[{re.escape(ALPHABET)}]")
_AT_THE_START = re.compile(r"^[ \t]*(\d*)([-+=.)])", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_ADDRESS = re.compile(r"(?<=http)(?=s?://)|(?<=www)(?=\.)|(?=@[-\w]+\.)", re.IGNORECASE)
_JOINER = "\u2060"
"""WORD JOINER, which is drawn as nothing: no address is found in the text around it."""


def escape(text: str) -> str:
    """Return text escaped for Streamlit's Markdown.

    A list, a numbered one or a heading's underline begins at the start of a line only, so ``v1.2``
    and ``well-known`` stay as they are. GitHub's Markdown makes links of bare addresses after it
    has read the backslashes, so a joiner keeps it from finding them. A sentence of the app is
    translated first.
    """
    text = _(text) if isinstance(text, Sentence) else text
    marked = _INSIDE.sub(r"\\\g<0>", _ADDRESS.sub(_JOINER, _INDENT.sub("", text)))
    return _AT_THE_START.sub(r"\1\\\2", marked)


def check_length(text: str | None, most: int) -> str:
    """Return a text if it is within a limit. Raises ValueError with a message."""
    text = text or ""
    if len(text) > MAX_CHARACTERS and _too_long():
        st.rerun()  # of a part of the page: the whole page lets go of it
    if len(text) > most:
        message = _(
            "The text has {n} characters; the limit is {most}. Shorten it.",
            n=f"{len(text):,}",
            most=f"{most:,}",
        )
        raise ValueError(message)
    return text


def drop_long_texts() -> list[str]:
    """Forget texts that are longer than any limit; return a message for each.

    Called before the widgets are drawn: their fields are then empty.
    """
    sentences = []
    for key, length in _too_long().items():
        st.session_state[key] = ""
        sentences.append(
            _(
                "The text was dropped, because it has {n} characters and the limit is {most}.",
                n=f"{length:,}",
                most=f"{MAX_CHARACTERS:,}",
            )
        )
    return sentences


def _too_long() -> dict[str, int]:
    """Return the widget keys and lengths of texts that are too long to keep."""
    return {
        str(key): len(value)
        for key, value in st.session_state.items()
        if isinstance(value, str) and len(value) > MAX_CHARACTERS
    }
