"""A tensor before and after an operation, with a colour for each element.

The colour shows where an element lay in the memory of its input, from dark to bright; the second
input has other hues. Pointing at an element highlights it everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.tensors.sight import NEW, TensorView
from tfm_core.plots.chart import chart
from tfm_core.plots.heads.attention import DIVERGING, MASKED, SCALES
from tfm_core.plots.palette import BLUE, GREY
from tfm_core.plots.sheet import Board, Panel, Scale, SheetCell, mixed, shades, written
from tfm_core.probe.types import Array
from tfm_core.sentences import N_

Index = tuple[int, ...]
# Lightness rises along both, so that order is seen with every kind of colour vision and in grey.
FIRST = ("#3b2f73", "#33638d", "#1f8f88", "#4dbb6a", "#c3dd3b", "#fde56b")
SECOND = ("#4a1236", "#8c2350", "#c8453f", "#ee7f3a", "#fbb44e", "#fde9b3")
_GREY = (MASKED["light"], MASKED["dark"])
_MAX_IN_ROW = 12


@dataclass(frozen=True, slots=True)
class Colours:
    """How elements are coloured and named.

    sizes: elements of each input. with_origin: write beside each number which element it is.
    by_value: colour by size, not by origin, where elements are new. picked: the element that is
    looked at; used: the elements (of all inputs, counted on) that it is made of.
    """

    sizes: tuple[int, ...]
    with_origin: bool = False
    by_value: bool = False
    picked: Index | None = None
    used: Collection[int] = field(default=())

    def name(self, origin: int) -> str:
        """Return ``x3``, or ``b0`` for an element of the second input."""
        first = self.sizes[0] if self.sizes else 0
        letter, index = ("x", origin) if origin < first else ("b", origin - first)
        return f"{letter}{index}" if len(self.sizes) > 1 else f"#{index}"

    def fill(self, origin: int) -> str:
        """Return the colour of an element."""
        first = self.sizes[0]
        if origin < first:
            return mixed(FIRST, origin / max(1, first - 1))
        return mixed(SECOND, (origin - first) / max(1, self.sizes[1] - 1))


def tensor_board(
    look: TensorView,
    title: str,
    colours: Colours,
    *,
    name: str = "",
    sign: str = "",
    extra: Sequence[str] = (),
) -> Board:
    """Return a tensor as a table for each of its slices along the last two axes.

    name: what a click on an element sends. extra: facts to stand with the measured ones.
    """
    if look.values.size == 0:
        panels = [Panel(((SheetCell(N_("none"), _GREY, N_("no elements"), role="out"),),))]
    else:
        panels = _panels(look, _cells(look, title, colours))
    return Board(title, tuple(panels), name=name, sign=sign, facts=(*facts(look), *extra))


def facts(look: TensorView) -> tuple[str, ...]:
    """Return shape, axes, strides, offset, order and type as short texts."""
    return (
        N_("shape {sizes}", sizes=_tuple(look.shape)),
        " × ".join(look.axes) or N_("no axes"),
        N_("strides {sizes}", sizes=_tuple(look.strides)),
        N_("offset {n}", n=look.offset),
        N_("contiguous") if look.is_contiguous else N_("not contiguous"),
        N_("{type} on {device}", type=look.dtype, device=look.device),
    )


def _tuple(numbers: Sequence[int]) -> str:
    return str(tuple(map(int, numbers)))


def _cells(look: TensorView, title: str, colours: Colours) -> Array:
    """Return the cells of a tensor, as an array of its shape."""
    shaded = _by_value(look.values) if colours.by_value else None
    digits = 0 if _is_whole(look.values) else 2
    made = np.empty(look.shape, dtype=object)
    for flat, index in enumerate(np.ndindex(*look.shape)):
        value, origin = float(look.values[index]), int(look.origins[index])
        at = "".join(f"[{i}]" for i in index)
        tip = N_(
            "{element} = {value:.6g}, place {n} in memory",
            element=f"{title}{at}",
            value=value,
            n=int(look.visits[flat]),
        )
        made[index] = _cell(value, origin, colours, digits, tip, (flat, index, shaded))
    return made


def _cell(
    value: float,
    origin: int,
    colours: Colours,
    digits: int,
    tip: str,
    where: tuple[int, Index, list[tuple[str, str]] | None],
) -> SheetCell:
    flat, index, shaded = where
    is_new, fill = origin == NEW, _GREY
    if shaded is not None:
        fill = shaded[flat]
    elif not is_new:
        fill = (colours.fill(origin),) * 2
    role = "out" if is_new and shaded is None else ""
    if index == colours.picked:
        role = "picked"
    elif not is_new and origin in colours.used:
        role = "used"
    corner = colours.name(origin) if colours.with_origin and not is_new else ""
    if not is_new:
        tip = N_("{facts}, element {name}", facts=tip, name=colours.name(origin))
    links = (f"y{flat}", *(f"e{one}" for one in colours.used)) if is_new else (f"e{origin}",)
    return SheetCell(written(value, digits), fill, tip, corner, links, role)


def _by_value(values: Array) -> list[tuple[str, str]]:
    flat = np.asarray(values, np.float64).reshape(1, -1)
    is_share = bool((flat >= 0).all() and (flat <= 1).all())
    scale: Scale = SCALES if is_share else DIVERGING
    high = 1.0 if is_share else float(np.abs(flat[np.isfinite(flat)]).max(initial=0)) or 1.0
    return shades(flat, scale, low=0.0 if is_share else -high, high=high)[0]


def _is_whole(values: Array) -> bool:
    finite = values[np.isfinite(values)]
    return bool((finite == np.round(finite)).all())


def _panels(look: TensorView, cells: Array) -> list[Panel]:
    if cells.ndim < 2:
        row = cells.reshape(1, -1)
        if row.shape[1] > _MAX_IN_ROW:
            return [Panel(_rows(row), wraps=True)]
        columns = tuple(map(str, range(row.shape[1]))) if cells.ndim else ()
        return [Panel(_rows(row), (), columns, "", look.axes[-1] if cells.ndim else "")]
    rows, columns = (tuple(map(str, range(size))) for size in cells.shape[-2:])
    lead = cells.shape[:-2]
    return [
        Panel(
            _rows(cells[index]),
            rows,
            columns,
            look.axes[-2],
            look.axes[-1],
            ", ".join(f"{axis} = {i}" for axis, i in zip(look.axes, index, strict=False)),
        )
        for index in np.ndindex(*lead)
    ]


def _rows(cells: Array) -> tuple[tuple[SheetCell, ...], ...]:
    return tuple(tuple(row) for row in cells.tolist())


def index_at(look: TensorView, row: int, column: int) -> Index:
    """Return the index of a clicked cell; its rows are counted through all slices."""
    if look.values.ndim < 2:
        return (column,)[: look.values.ndim]
    *lead, height, _width = look.shape
    slices, at = divmod(row, height)
    return (*(int(i) for i in np.unravel_index(slices, lead)), at, column) if lead else (at, column)


def memory_board(look: TensorView, title: str, colours: Colours) -> Board:
    """Return the memory behind a tensor, in order; small: when each index is read."""
    order: dict[int, list[int]] = {}
    for nth, index in enumerate(look.visits.tolist()):
        order.setdefault(index, []).append(nth)
    digits = 0 if _is_whole(look.storage) else 2
    shaded = _by_value(look.storage) if colours.by_value else None
    cells = []
    for index, (value, origin) in enumerate(
        zip(look.storage.tolist(), look.storage_origins.tolist(), strict=True)
    ):
        reads = order.get(index, [])
        times = ", ".join([*(f"{n + 1}." for n in reads[:8]), *(["…"] if len(reads) > 8 else [])])
        when = N_("read {times}", times=times) if reads else N_("never read")
        fill = _GREY
        if reads and shaded is not None:
            fill = shaded[index]
        elif reads and origin != NEW:
            fill = (colours.fill(origin),) * 2
        corner = f"{reads[0] + 1}." if len(reads) == 1 else (f"{len(reads)}×" if reads else "")
        tip = N_("place {n}: {value:.6g}, {when}", n=index, value=value, when=when)
        role = "" if reads and fill != _GREY else "out"
        links = (f"e{origin}",) if origin != NEW else (f"m{title}{index}",)
        cells.append(SheetCell(written(float(value), digits), fill, tip, corner, links, role))
    return Board(title, (Panel((tuple(cells),), wraps=True),))


def reading(looks: Sequence[TensorView]) -> go.Figure:
    """Draw which index in memory is read when: contiguous is a straight line up by one."""
    styles = {"x": (GREY, "dot", "circle-open", 9), "y": (BLUE, "solid", "square", 6)}
    last = max(len(one.visits) for one in looks)
    top = max(float(one.visits.max(initial=0)) for one in looks)
    return chart(
        {one.name: (range(1, len(one.visits) + 1), one.visits) for one in looks},
        looks=[
            {
                "line": {"color": colour, "dash": dash, "width": 1.6},
                "marker": {"symbol": symbol, "size": size, "color": colour},
            }
            for colour, dash, symbol, size in (styles[one.name] for one in looks)
        ],
        hover=lambda name: N_("element %{{x}} of {name}<br>place %{{y}}<extra></extra>", name=name),
        height=300,
        top=36,
        x={"title": N_("element, in reading order"), "range": (0.4, last + 0.6)},
        y={"title": N_("memory position"), "range": (-0.06 * top - 0.4, 1.06 * top + 0.4)},
        showlegend=len(looks) > 1,
    )
