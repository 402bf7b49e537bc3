"""One table of attention by hand: numbers in the colour of their size, and what is picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tfm_core.inspect.by_hand.arithmetic import Say
from tfm_core.inspect.by_hand.attention import Bools, Floats
from tfm_core.plots.attention import MASKED, SCALES
from tfm_core.plots.masks import DIVERGING
from tfm_core.plots.sheet import PLAIN, Board, Panel, SheetCell, shades, written

PLAIN_FILL = (PLAIN["light"], PLAIN["dark"])
_GREY = (MASKED["light"], MASKED["dark"])
_LOWEST = -1e30  # below that a score was masked
Links = Callable[[int, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Pick:
    """What is written out: a query, a key, and a dimension of the values, each from 0."""

    query: int
    key: int
    dimension: int

    def within(self, n_words: int, n_dimensions: int) -> Pick:
        """Return the pick moved to what there is."""
        most = n_words - 1, n_words - 1, n_dimensions - 1
        return Pick(*(min(x, m) for x, m in zip(_of(self), most, strict=True)))


def _of(pick: Pick) -> tuple[int, int, int]:
    return pick.query, pick.key, pick.dimension


def numbered(n: int) -> tuple[str, ...]:
    """Return the names of dimensions: 1, 2, 3."""
    return tuple(str(i + 1) for i in range(n))


def board(
    title: str,
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    name: str = "",
    sign: str = "",
    hue: str = "",
    is_share: bool = False,
    is_plain: bool = False,
    axes: tuple[str, str] = ("", ""),
    roles: dict[tuple[int, int], str] | None = None,
    links: Links | None = None,
    facts: tuple[str, ...] = (),
    lowest: str = "lowest",
) -> Board:
    """Return a table of values (rows, columns).

    is_share: shares from 0 to 1 in one hue; is_plain: without a hue; else two hues around zero.
    lowest: what a masked score is called.
    """
    fills = _fills(values, is_share)
    cells = []
    for i, row in enumerate(values.tolist()):
        made = []
        for j, value in enumerate(row):
            is_out = value < _LOWEST
            role = (roles or {}).get((i, j), "") or ("out" if is_out else "")
            made.append(
                SheetCell(
                    lowest if is_out else written(value),
                    _GREY if is_out else (PLAIN_FILL if is_plain else fills[i][j]),
                    tip=f"{title}, {rows[i]}, {columns[j]}: {value:.6g}",
                    links=links(i, j) if links else (),
                    role=role,
                )
            )
        cells.append(tuple(made))
    panel = Panel(tuple(cells), tuple(rows), tuple(columns), *axes)
    return Board(title, (panel,), name=name, sign=sign, hue=hue, facts=facts)


def _fills(values: Floats, is_share: bool) -> list[list[tuple[str, str]]]:
    if is_share:
        return shades(values, SCALES, low=0, high=1)
    largest = float(np.abs(values[np.abs(values) < -_LOWEST]).max(initial=0)) or 1.0
    return shades(values, DIVERGING, low=-largest, high=largest)


def mask_board(
    allowed: Bools, words: Sequence[str], pick: Pick, sign: str = "", say: Say = str
) -> Board:
    """Return the mask (T, T) as ticks and crosses; a click turns one over."""
    may_tip = say("{query} may attend to {key}; click turns")
    not_tip = say("{query} must not attend to {key}; click turns")
    yes, no = (SCALES["light"][1], SCALES["dark"][1]), _GREY
    cells = tuple(
        tuple(
            SheetCell(
                "✓" if may else "✕",
                yes if may else no,
                tip=(may_tip if may else not_tip).format(query=words[i], key=words[j]),
                links=(f"{i},{j}",),
                role="picked" if (i, j) == (pick.query, pick.key) else ("" if may else "out"),
            )
            for j, may in enumerate(row)
        )
        for i, row in enumerate(allowed.tolist())
    )
    panel = Panel(cells, tuple(words), tuple(words), say("query"), say("key"))
    return Board(say("Mask: click a cell"), (panel,), name="mask", sign=sign)
