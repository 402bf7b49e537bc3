"""What the page of drawings shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link
from pages.ui.parameters import Unfit, Written

FIRST = "3"
"""The sample that stands on the board at the first visit."""
PICTURE = "picture-"
_MAX = 4096  # letters of a drawing


def _board_of(text: str) -> str:
    is_sample = len(text) == 1 and text in "0123456789"
    is_picture = text.startswith(PICTURE) and len(PICTURE) < len(text) <= _MAX
    if not (is_sample or is_picture):
        raise Unfit(_("0 to 9, or picture- and a drawing"))
    return text


BOARD = Written("digit", reader=_board_of, writer=str, first=FIRST)
"""A sample by its place, or ``picture-`` and the drawing as ``own_picture.to_text`` writes it."""


@dataclass(frozen=True, slots=True)
class DrawView:
    """What stands on the board."""

    digit: str = view_link.linked(BOARD)
