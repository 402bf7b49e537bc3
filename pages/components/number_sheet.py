"""Small tables of numbers that are read like text: linked under the pointer, picked by a click.

Cells with a link in common light up together; arrow keys move, Enter picks. What is sent is text,
set as text. The tables wrap into the width there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pages.components.component import component, is_index
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.sheet import SheetLine, described

_component = component("number_sheet", css=["number_sheet.css"], html='<div class="sheet"></div>\n')


def number_sheet(
    lines: Sequence[SheetLine],
    *,
    key: str,
    on_pick: Callable[[str, int, int], None] | None = None,
) -> None:
    """Show lines of boards; a click calls ``on_pick(board, row, column)`` before the next run."""
    sizes = {board.name: _size(board.panels) for line in lines for board in line.boards}

    def picked(value: object) -> None:
        pick = valid_pick(value, sizes)
        if pick is not None and on_pick is not None:
            on_pick(*pick)

    _component({"lines": described(lines, COLOURS)}, on={"pick": picked}, key=key)


def valid_pick(value: object, sizes: Mapping[str, tuple[int, int]]) -> tuple[str, int, int] | None:
    """Return board, row and column as the browser sent them; None where they are no such thing."""
    if not isinstance(value, dict):
        return None
    board, cell = value.get("board"), value.get("cell")
    if not isinstance(board, str) or not board or board not in sizes:
        return None
    if not is_index(cell, *sizes[board]):
        return None
    return board, cell[0], cell[1]


def _size(panels: Sequence[Any]) -> tuple[int, int]:
    """Return rows and columns; the rows of several panels are counted one after the other."""
    return sum(len(panel.cells) for panel in panels), len(panels[0].cells[0]) if panels else 0
