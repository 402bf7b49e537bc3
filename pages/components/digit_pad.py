"""A pad to draw a digit on, with finger, pen or mouse: white ink on black, as MNIST is."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pages.components.component import component
from pages.i18n import _

SIDE = 112  # pixels to a side of what the browser sends, 4 for each of MNIST's

_component = component(
    "digit_pad", css=["drawing_board.css", "digit_pad.css"], html='<div class="pad"></div>\n'
)


def digit_pad(
    *, key: str, on_change: Callable[[], None] | None = None
) -> npt.NDArray[np.uint8] | None:
    """Show the pad; return what is drawn as uint8 (SIDE, SIDE), 255 is ink, or None when empty."""
    result = _component(
        {"side": SIDE, "words": board_words()},
        default={"pixels": ""},
        on={"pixels": None if on_change is None else lambda _pixels: on_change()},
        key=key,
        width="content",
    )
    return decode(result.pixels)


def board_words() -> dict[str, str]:
    """Return what a board and its buttons are called."""
    return {
        "clear": _("Clear"),
        "undo": _("Undo"),
        "hint": _("Draw a digit here"),
        "pad": _("Drawing pad: draw one digit with the mouse, a pen or a finger."),
    }


def decode(value: object, side: int = SIDE) -> npt.NDArray[np.uint8] | None:
    """Return the pixels (side, side) that the browser sent, or None where they are no drawing."""
    if not isinstance(value, str) or len(value) != 4 * -(-(side * side) // 3):
        return None
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != side * side:
        return None
    pixels = np.frombuffer(raw, np.uint8).reshape(side, side)
    return pixels if pixels.any() else None
