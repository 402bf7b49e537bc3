"""The model as a board of its parts: a layer a row, a button a part; a press switches it off or on.

Heads carry the colour of what they are worth, where that was measured. Nothing is worked out here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from pages.components.component import component, is_name
from pages.i18n import _

_component = component("knock_board", css=["knock_board.css"], html='<div class="board"></div>\n')


@dataclass(frozen=True, slots=True)
class Cell:
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
class Group:
    """Parts that belong together, such as a sublayer's."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A layer, or what belongs to no layer. whole: all of it at once, below its name."""

    name: str
    groups: tuple[Group, ...]
    whole: Cell | None = None


def knock_board(rows: Sequence[Row], *, on_pick: Callable[[str], None], key: str) -> None:
    """Show the board; ``on_pick`` hears the code of the part that is pressed."""
    known = frozenset(cell.code for row in rows for cell in _cells(row))

    def picked(code: object) -> None:
        if is_name(code, known):
            on_pick(code)

    _component(
        {
            "rows": [asdict(row) for row in rows],
            "label": _("The parts of the model: a press switches one off, or on again"),
        },
        on={"pick": picked},
        key=key,
    )


def _cells(row: Row) -> list[Cell]:
    cells = [cell for group in row.groups for cell in group.cells]
    return cells if row.whole is None else [*cells, row.whole]
