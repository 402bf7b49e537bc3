"""The scripts and style sheets of the components."""

from __future__ import annotations

from pathlib import Path


def joined(*names: str) -> str:
    """Return files of this folder one after the other: as one script, or as one sheet."""
    return "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)
