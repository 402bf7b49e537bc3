"""Colours by meaning: one colour, one meaning, in every figure, light and dark.

The hues are Okabe and Ito's eight, which people with any common colour blindness can tell apart
(Okabe & Ito 2008, "Color Universal Design"), some of them moved in lightness so that each has a
contrast of at least 3:1 to both the light and the dark background. Never by colour alone: lines
also differ in dash or marker, and legends say the name.
"""

from __future__ import annotations

from typing import Final, Literal

ThemeName = Literal["light", "dark"]

BLUE: Final = "#2f7fc1"
ORANGE: Final = "#c47a00"
GREEN: Final = "#0f9171"
VERMILION: Final = "#d55e00"
PURPLE: Final = "#b5679a"
SKY: Final = "#3b92c9"
OCHRE: Final = "#96821a"
GREY: Final = "#7d8592"

HUES: Final[dict[str, str]] = {
    "blue": BLUE,
    "orange": ORANGE,
    "green": GREEN,
    "vermilion": VERMILION,
    "purple": PURPLE,
    "sky": SKY,
    "ochre": OCHRE,
    "grey": GREY,
}
"""By the names that records of variants use."""

COLOURS: Final[dict[str, str]] = {
    "query": BLUE,
    "key": ORANGE,
    "value": GREEN,
    "encoder": SKY,
    "decoder": VERMILION,
    "cross": PURPLE,
    "train": BLUE,
    "validation": VERMILION,
    "average": PURPLE,
    "test": GREEN,
    "chance": GREY,
    "floor": GREY,
    "right": GREEN,
    "wrong": VERMILION,
    "learning rate": OCHRE,
    "gradient": PURPLE,
}

BACKGROUNDS: Final[dict[ThemeName, str]] = {"light": "#fbfaf7", "dark": "#14171c"}
INKS: Final[dict[ThemeName, str]] = {"light": "#1f2630", "dark": "#e6e8eb"}
LINES: Final[dict[ThemeName, str]] = {"light": "#e2dfd6", "dark": "#2c323b"}
LINKS: Final[dict[ThemeName, str]] = {"light": "#1f6aa8", "dark": "#6db3ea"}
CARDS: Final[dict[ThemeName, str]] = {"light": "#f1efe8", "dark": "#1c2027"}

SCALES: Final[dict[ThemeName, tuple[str, ...]]] = {  # light: ColorBrewer's Blues
    "light": ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"),
    "dark": ("#0d1b2a", "#12406b", "#1f78b4", "#74b9e0", "#f2fafe"),
}
"""Of weights and other shares: one hue, and lightness that falls or rises all the way.

So they are read alike with every kind of colour vision, and in grey."""
DIVERGING: Final[dict[ThemeName, tuple[str, ...]]] = {  # ColorBrewer's PuOr
    "light": ("#b35806", "#fdb863", "#f7f5f0", "#b2abd2", "#542788"),
    "dark": ("#f0a24a", "#8a5310", "#1d2128", "#5b4a92", "#b9a9ea"),
}
"""Of numbers with a sign, orange below zero and purple above, which all tell apart."""
MASKED: Final[dict[ThemeName, str]] = {"light": "#dcdcdc", "dark": "#3a3a3a"}


def contrast(first: str, second: str) -> float:
    """Return the contrast of two ``#rrggbb`` colours, 1 to 21 (WCAG 2.2, 1.4.11)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
