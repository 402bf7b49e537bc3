"""The text that comes with the app for language models; see NOTICE for its source and licence."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("alice.txt")


@cache
def read_text() -> str:
    """Return the first chapter of Alice's Adventures in Wonderland, about 11,000 characters."""
    return FILE.read_text(encoding="utf-8")
