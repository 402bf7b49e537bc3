"""The settings in the first lines of notes that Anki exports as text.

https://docs.ankiweb.net/importing/text-files.html
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import takewhile

_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "colon": ":"}
_SPECIAL = ("guid", "notetype", "deck", "tags")
_SETTING = re.compile(
    rf"#(separator|html|columns|tags|deck|notetype|if matches|(?:{'|'.join(_SPECIAL)}) column):(.*)"
)
_BREAK = re.compile(r"</?(?:br|div|p|li|ul|ol|tr|td|h\d)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)


def settings_of(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return the settings, one a line, in the first lines of a file; none of another file."""
    found = takewhile(bool, map(_SETTING.fullmatch, lines))
    return [(one[1], one[2].strip()) for one in found if one]


def separator_of(settings: Sequence[tuple[str, str]]) -> str | None:
    """Return the delimiter that settings name."""
    named = dict(settings).get("separator", "")
    return _SEPARATORS.get(named.casefold(), named if named in _SEPARATORS.values() else None)


def names_of(settings: Sequence[tuple[str, str]], width: int, delimiter: str) -> tuple[str, ...]:
    """Return the names of the columns, () where none is known."""
    values = dict(settings)
    if not values:
        return ()
    names = values.get("columns", "").split(delimiter)
    if len(names) != width:
        names = [""] * width
    special = {values.get(f"{name} column"): name for name in _SPECIAL}
    names = [name or special.get(str(at), "") for at, name in enumerate(names, 1)]
    return tuple(names) if any(names) else ()


def without_tags(cell: str | None) -> str | None:
    """Return a cell of HTML as plain text."""
    return None if cell is None else html.unescape(_TAG.sub("", _BREAK.sub(" ", cell)))
