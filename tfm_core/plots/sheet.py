"""A sheet of numbers: small tables whose cells carry number, colour and where they are from.

A heatmap of a dozen cells is a table: its numbers are read, compared and followed by eye. So they
are text, in a browser component that draws what this module describes. Every cell brings the
colours of both themes, and an ink that can be read on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.plots.palette import ThemeName, contrast

Numbers = npt.NDArray[Any]
Colours = npt.NDArray[np.uint8]
Scale = dict[ThemeName, tuple[str, ...]]
MINUS = "−"
_INKS = ("#000000", "#ffffff")  # one of them has a contrast of 4.5 to any colour
PLAIN: dict[ThemeName, str] = {"light": "#efece4", "dark": "#222731"}


@dataclass(frozen=True, slots=True)
class SheetCell:
    """One number. fill: its colour in the light and the dark theme. tip: said under the pointer.

    corner: small text in the corner. links: first its own name, then the names of what lights up
    with it under the pointer; several cells may share a name. role: "" or "picked", "used" (part
    of what is picked), "out" (masked or filled in).
    """

    text: str
    fill: tuple[str, str] = (PLAIN["light"], PLAIN["dark"])
    tip: str = ""
    corner: str = ""
    links: tuple[str, ...] = ()
    role: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A table of cells with the names of its rows and columns. title: which slice it is.

    wraps: the one row goes on in the next line where there is no room for it.
    """

    cells: tuple[tuple[SheetCell, ...], ...]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_title: str = ""
    column_title: str = ""
    title: str = ""
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """A tensor: one panel, or a panel for each of its slices.

    name: what a click sends, with row and column; "" where clicks mean nothing. sign: what stands
    before it, such as "×". hue: a colour of the palette for its title. facts: short, below it.
    """

    title: str
    panels: tuple[Panel, ...]
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


def shades(
    values: Numbers, scale: Scale, *, low: float, high: float
) -> list[list[tuple[str, str]]]:
    """Return the colours of values (rows, columns) in the light and the dark theme."""
    span = (high - low) or 1.0
    shares = (np.clip(np.nan_to_num(values, nan=low), low, high) - low) / span
    return [
        [(mixed(scale["light"], share), mixed(scale["dark"], share)) for share in row]
        for row in np.round(shares, 3).tolist()
    ]


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


@lru_cache(maxsize=4096)
def ink_on(fill: str) -> str:
    """Return black or white, whichever reads better on a colour."""
    return max(_INKS, key=lambda ink: contrast(ink, fill))


def described(lines: Sequence[SheetLine], hues: dict[str, str]) -> list[dict[str, Any]]:
    """Return what the browser gets of the lines, as plain lists and texts."""
    return [
        {
            "title": line.title,
            "words": line.words,
            "arithmetic": list(line.arithmetic),
            "boards": [_board(board, hues) for board in line.boards],
        }
        for line in lines
    ]


def _board(board: Board, hues: dict[str, str]) -> dict[str, Any]:
    return {
        "title": board.title,
        "name": board.name,
        "sign": board.sign,
        "hue": hues.get(board.hue, ""),
        "facts": list(board.facts),
        "panels": [_panel(panel) for panel in board.panels],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "rows": list(panel.rows),
        "columns": list(panel.columns),
        "row_title": panel.row_title,
        "column_title": panel.column_title,
        "wraps": panel.wraps,
        "cells": [[_cell(cell) for cell in row] for row in panel.cells],
    }


def _cell(cell: SheetCell) -> list[Any]:
    light, dark = cell.fill
    colours = [light, ink_on(light), dark, ink_on(dark)]
    return [cell.text, colours, cell.tip, cell.corner, list(cell.links), cell.role]
