"""Components to pick from: words, pictures, cells of small tables, and parts of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_index, is_name
from pages.i18n import _
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.sheet import SheetLine, described
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

    def picked(value: Any) -> None:
        if is_index([value], count):
            on_pick(value)

    _thumbnails(
        {
            "pictures": [
                {
                    "url": picture_url(each.picture),
                    "name": each.name,
                    "below": each.below,
                    "wrong": each.is_wrong,
                }
                for each in pictures
            ],
            "chosen": chosen,
            "label": label,
        },
        on={"pick": picked},
        key=key,
    )


_sheet = component("number_sheet", css=["number_sheet.css"], html='<div class="sheet"></div>\n')


def number_sheet(
    lines: Sequence[SheetLine], *, key: str, on_pick: Callable[[str, int, int], None] | None = None
) -> None:
    """Draw lines of boards; a click calls ``on_pick(board, row, column)``."""
    sizes = {board.name: _size(board.panels) for line in lines for board in line.boards}

    def picked(value: object) -> None:
        pick = valid_pick(value, sizes)
        if pick is not None and on_pick is not None:
            on_pick(*pick)

    _sheet({"lines": translated(described(lines, COLOURS), _)}, on={"pick": picked}, key=key)


def valid_pick(value: object, sizes: Mapping[str, tuple[int, int]]) -> tuple[str, int, int] | None:
    """Return board, row and column from the browser, or None if invalid."""
    if not isinstance(value, dict):
        return None
    board, cell = value.get("board"), value.get("cell")
    if not isinstance(board, str) or not board or board not in sizes:
        return None
    if not is_index(cell, *sizes[board]):
        return None
    return board, cell[0], cell[1]


def _size(panels: Sequence[Any]) -> tuple[int, int]:
    """Return rows and columns; rows of several panels count in sequence."""
    return sum(len(panel.cells) for panel in panels), len(panels[0].cells[0]) if panels else 0


_board = component("knock_board", css=["knock_board.css"], html='<div class="board"></div>\n')


@dataclass(frozen=True, slots=True)
class PartButton:
    """A part. code: what ``on_pick`` hears. text: on the button. name: in words, for everybody.

    heat: 0 to 1, how much it is worth; None where that was not measured. worth: the same in words.
    """

    code: str
    text: str
    name: str
    is_off: bool
    is_head: bool = False
    heat: float | None = None
    worth: str = ""


@dataclass(frozen=True, slots=True)
class PartGroup:
    """Parts that belong together, such as a sublayer's."""

    name: str
    cells: tuple[PartButton, ...]


@dataclass(frozen=True, slots=True)
class PartRow:
    """A layer, or what belongs to no layer. whole: all of it at once, below its name."""

    name: str
    groups: tuple[PartGroup, ...]
    whole: PartButton | None = None


def knock_board(rows: Sequence[PartRow], *, on_pick: Callable[[str], None], key: str) -> None:
    """Draw the board; ``on_pick`` gets the code of the pressed part."""
    known = frozenset(cell.code for row in rows for cell in _cells(row))

    def picked(code: object) -> None:
        if is_name(code, known):
            on_pick(code)

    _board(
        {
            "rows": [asdict(row) for row in rows],
            "label": _("Parts of the model: press to switch one off or on"),
        },
        on={"pick": picked},
        key=key,
    )


def _cells(row: PartRow) -> list[PartButton]:
    cells = [cell for group in row.groups for cell in group.cells]
    return cells if row.whole is None else [*cells, row.whole]
