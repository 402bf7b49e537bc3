"""Components to pick from: words, pictures, cells of small tables, and parts of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_index, is_name
from pages.i18n import _
from tfm_core.plots.palette import COLOURS, DIVERGING, MASKED, SCALES, VERMILION, ThemeName
from tfm_core.plots.png import picture_url
from tfm_core.plots.sheet import Cells, Place, SheetLine, described
from tfm_core.sentences import translated

_chips = component("word_chips", css=["word_chips.css"], html='<div class="chips"></div>\n')


def word_chips(
    groups: Mapping[str, Sequence[str]],
    *,
    field: str,
    glue: str,
    on_pick: Callable[[str], None],
    key: str,
) -> None:
    """Draw words in groups, name -> words; ``on_pick`` gets the pressed one.

    field: the key of the text input whose last word is completed. glue: what stands between words.
    """
    known = frozenset(word for words in groups.values() for word in words)

    def picked(word: object) -> None:
        if is_name(word, known):
            on_pick(word)

    _chips(
        {
            "groups": [[name, list(words)] for name, words in groups.items()],
            "field": field,
            "glue": glue,
            "label": _("Known words: press to add"),
        },
        on={"pick": picked},
        key=key,
    )


_thumbnails = component("thumbnails", css=["thumbnails.css"])


@dataclass(frozen=True, slots=True, eq=False)
class Thumbnail:
    """A picture (C, height, width), uint8, its name, and a few letters below it."""

    picture: npt.NDArray[np.uint8]
    name: str
    below: str = ""
    is_wrong: bool = False


def thumbnails(
    pictures: Sequence[Thumbnail],
    *,
    chosen: int | None,
    label: str,
    on_pick: Callable[[int], None],
    key: str,
) -> None:
    """Draw pictures in a row; ``on_pick`` gets the index of the pressed one."""
    count = len(pictures)  # a session keeps what its callbacks hold
    urls = [picture_url(each.picture) for each in pictures]

    def picked(value: Any) -> None:
        if is_index([value], count):
            on_pick(value)

    _thumbnails(
        {
            "pictures": [
                {"url": url, "name": each.name, "below": each.below, "wrong": each.is_wrong}
                for url, each in zip(urls, pictures, strict=True)
            ],
            "chosen": chosen,
            "label": label,
        },
        on={"pick": picked},
        key=key,
    )


_sheet = component("number_sheet", css=["number_sheet.css"], html='<div class="sheet"></div>\n')
_PLAIN: dict[ThemeName, str] = {"light": "#efece4", "dark": "#222731"}
_SHEET_COLOURS = {
    theme: {
        "share": SCALES[theme],
        "signed": DIVERGING[theme],
        "plain": [plain, plain],
        "masked": MASKED[theme],
        "nan": VERMILION,
    }
    for theme, plain in _PLAIN.items()
}


@dataclass(frozen=True, slots=True)
class MaskEdit:
    """A mask that is edited: its clicked cells turn over in the browser, before the server hears.

    version: names what was clicked on; clicks on something older are dropped. cells: turned over so
    far. on_edit: gets all of them before the next run.
    """

    version: str
    cells: Collection[Place]
    on_edit: Callable[[tuple[Place, ...]], None]


def number_sheet(
    lines: Sequence[SheetLine],
    *,
    key: str,
    on_pick: Callable[[str, int, int], None] | None = None,
    edit: MaskEdit | None = None,
    fits: bool = False,
) -> None:
    """Draw lines of boards; a click calls ``on_pick(board, row, column)``.

    edit: of the one board that is clicked. fits: the boards, of one line, fit their room.
    """
    sizes = {board.name: _size(board.panels) for line in lines for board in line.boards}

    def picked(value: object) -> None:
        pick = valid_pick(value, sizes)
        if pick is not None and on_pick is not None:
            on_pick(*pick)

    def edited(value: object) -> None:
        if edit is None:
            return
        cells = valid_edit(value, edit.version, sizes["mask"])
        if cells is not None:
            edit.on_edit(cells)

    data: dict[str, Any] = {
        "lines": translated(described(lines, COLOURS), _),
        "colours": _SHEET_COLOURS,
        "fits": fits,
    }
    if edit is not None:
        hint = _("Point at a cell: the same pair lights up everywhere.")
        data["edit"] = {"version": edit.version, "cells": list(edit.cells), "hint": hint}
    _sheet(data, on={"pick": picked, "edit": edited}, key=key)


def valid_edit(value: object, version: str, shape: tuple[int, int]) -> tuple[Place, ...] | None:
    """Return the clicked cells from the browser, or None if invalid."""
    if not isinstance(value, dict) or value.get("version") != version:
        return None
    cells = value.get("cells")
    if not isinstance(cells, list) or len(cells) > shape[0] * shape[1]:
        return None
    if not all(is_index(cell, *shape) for cell in cells):
        return None
    return tuple(dict.fromkeys((row, column) for row, column in cells))


def valid_pick(value: object, sizes: Mapping[str, tuple[int, int]]) -> tuple[str, int, int] | None:
    """Return board, row and column from the browser, or None if invalid."""
    board, cell = (value.get("board"), value.get("cell")) if isinstance(value, dict) else ("", None)
    if not board or not is_name(board, sizes) or not is_index(cell, *sizes[board]):
        return None
    return board, cell[0], cell[1]


def _size(panels: Sequence[Cells]) -> tuple[int, int]:
    """Return rows and columns; rows of several panels count in sequence."""
    return sum(len(panel.values) for panel in panels), panels[0].values.shape[1] if panels else 0


_board = component("knock_board", css=["knock_board.css"], html='<div class="board"></div>\n')


@dataclass(frozen=True, slots=True)
class PartButton:
    """A part. code: what ``on_pick`` hears. text: on the button. name: in words, for everybody.

    row: a layer, or what belongs to none. group: parts that belong together, such as a sublayer's;
    "" for the whole row, whose button stands below its name. heat: 0 to 1, how much it is worth;
    None where that was not measured. worth: the same in words.
    """

    code: str
    row: str
    group: str
    text: str
    name: str
    is_off: bool
    is_head: bool
    heat: float | None = None
    worth: str = ""


def knock_board(parts: Sequence[PartButton], *, on_pick: Callable[[str], None], key: str) -> None:
    """Draw the board, row by row; ``on_pick`` gets the code of the pressed part."""
    known = frozenset(part.code for part in parts)

    def picked(code: object) -> None:
        if is_name(code, known):
            on_pick(code)

    label = _("Parts of the model: press to switch one off or on")
    _board({"cells": list(map(asdict, parts)), "label": label}, on={"pick": picked}, key=key)
