"""The shell command that asks a generated ``model.py``, written so that no shell runs its texts."""

from __future__ import annotations

import re
import shlex

from tfm_core.inspect.source.carried import Carried

PLACEHOLDER = "your text"
"""Stands for an example that cannot be quoted alike in sh, PowerShell and cmd."""

_BARE = re.compile(r"[\w./:+][\w./:+-]*")
_SPECIAL = re.compile(r"[\"“”„$`\\!%\x00-\x1f\x7f-\x9f]|[^\S ]|\A-|\A\Z")
"""What a shell reads inside double quotes, or argparse as an option; PowerShell ends a text at
typographic quotes, too, and cmd expands ``%NAME%``."""


def command(data: Carried, checkpoint: str) -> str:
    """Return the command that asks a file with these data about its example.

    checkpoint: the path of the weights, a name of the app or of this computer.
    """
    asked = "picture.png" if data.mean else _text(data.example)
    return f"python model.py --checkpoint {_path(checkpoint)} {asked}"


def _text(text: str) -> str:
    """Return a text of the data as one argument that every shell reads the same way."""
    if _BARE.fullmatch(text):
        return text
    return f'"{PLACEHOLDER if _SPECIAL.search(text) else text}"'


def _path(path: str) -> str:
    """Return a path as one argument: in double quotes, which every shell knows, if possible."""
    if _BARE.fullmatch(path):
        return path
    return shlex.quote(path) if _SPECIAL.search(path) else f'"{path}"'
