"""A sheet of numbers: small tables whose cells carry number, colour and where they are from.

A heatmap of a dozen cells is a table: its numbers are read, compared and followed by eye. So they
are text, in a browser component that colours what this module describes as the theme asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.sentences import N_

Numbers = npt.NDArray[Any]
Colours = npt.NDArray[np.uint8]
Place = tuple[int, int]
"""Row and column of a cell, from 0."""
Texts = Sequence[Sequence[str]]
"""Of all cells (rows, columns)."""
MINUS = "−"
_LOWEST = -1e30  # below that a score was masked


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cells:
    """A grid of numbers (rows, columns), how it is drawn, and what is said of its cells.

    values: what is masked is below any score. rows, columns: their names. title: which slice it is.
    scale: from -top to top (signed; None: the largest), 0 to 1 (share), or one colour (plain).
    lowest: the text of what is masked. fills: in place of a plain scale, "" for grey. texts: in
    place of numbers with so many digits. says: of each cell, or a template of board, row, column
    and value. corners: small texts. names: of each, separated by blanks, or a template of its row
    i and column j; lights: the names of what lights up with it under the pointer, if not only its
    own. marks: what is "picked", "used" (part of what is picked) or "out" (masked or filled in,
    and so grey). states: text and saying of a cell that is off, and on. wraps: the one row goes on
    in the next line where there is no room for it.
    """

    values: Numbers
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    row_title: str = ""
    column_title: str = ""
    title: str = ""
    scale: Literal["signed", "share", "plain"] = "plain"
    top: float | None = None
    lowest: str = N_("lowest")
    fills: Texts = ()
    digits: int = 2
    texts: Texts = ()
    says: str | Texts = "{board}, {row}, {column}: {value}"
    corners: Texts = ()
    names: str | Texts = ""
    lights: str | Texts = ""
    marks: Mapping[Place, str] = field(default_factory=dict)
    states: Sequence[tuple[str, str]] = ()
    wraps: bool = False

    def packed(self) -> dict[str, Any]:
        """Return what the browser gets. A shade is a share of the scale, None for grey."""
        numbers = np.asarray(self.values, np.float64)
        is_finite = np.isfinite(numbers)
        masked = is_finite & (numbers < _LOWEST)
        shares = numbers
        if self.scale == "signed":
            top = self.top or np.abs(numbers[is_finite & ~masked]).max(initial=0)
            shares = 0.5 + numbers / (2 * (top or 1.0))
        shades = np.round(np.nan_to_num(np.clip(shares, 0, 1)), 3).astype(object)
        shades[masked] = None
        lowest = {(i, j): "out" for i, j in np.argwhere(masked).tolist()}
        texts = [[written(value, self.digits) for value in row] for row in numbers.tolist()]
        for row, column in lowest:
            texts[row][column] = self.lowest
        return {part.name: getattr(self, part.name) for part in fields(self)} | {
            "values": [[f"{value:.6g}" for value in row] for row in numbers.tolist()],
            "shades": shades.tolist(),
            "texts": self.texts or texts,
            "marks": [[*place, mark] for place, mark in (lowest | dict(self.marks)).items()],
        }


@dataclass(frozen=True, slots=True)
class Board:
    """A tensor: one panel, or a panel for each of its slices.

    name: what a click sends, with row and column; "" where clicks mean nothing. sign: what stands
    before it, such as "×". hue: a colour of the palette for its title. facts: short, below it.
    """

    title: str
    panels: tuple[Cells, ...]
    name: str = ""
    sign: str = ""
    hue: str = ""
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SheetLine:
    """Boards side by side, what happens between them, and the arithmetic of what is picked."""

    title: str
    boards: tuple[Board, ...]
    words: str = ""
    arithmetic: tuple[str, ...] = field(default=())


def written(value: float, digits: int = 2) -> str:
    """Return a number as it stands in a cell: fixed digits, a real minus, no minus zero."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    if abs(value) >= 1e5:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("-", MINUS)
    text = f"{value:.{digits}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


@lru_cache(maxsize=4096)
def mixed(stops: tuple[str, ...], share: float) -> str:
    """Return the colour at a share, 0 to 1, of the way along ``#rrggbb`` stops."""
    return "#" + colours_at(stops, np.float64(share)).tobytes().hex()


def colours_at(stops: Sequence[str], shares: npt.NDArray[np.float64] | np.float64) -> Colours:
    """Return (..., 3): the colours at shares (...), 0 to 1, of the way along ``#rrggbb`` stops."""
    knots = np.linspace(0, 1, len(stops))
    channels = np.array([list(bytes.fromhex(stop[1:])) for stop in stops], np.float64).T
    mixtures = np.stack([np.interp(shares, knots, channel) for channel in channels], -1)
    return np.asarray(np.rint(mixtures), np.uint8)


def described(lines: Sequence[SheetLine], hues: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what the browser gets of the lines, as plain lists and texts."""
    return [
        {
            "title": line.title,
            "words": line.words,
            "arithmetic": line.arithmetic,
            "boards": [
                {
                    "title": board.title,
                    "name": board.name,
                    "sign": board.sign,
                    "hue": hues.get(board.hue, ""),
                    "facts": board.facts,
                    "panels": [panel.packed() for panel in board.panels],
                }
                for board in line.boards
            ],
        }
        for line in lines
    ]
