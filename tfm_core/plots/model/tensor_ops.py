"""A tensor before and after an operation, with a colour for each element.

The colour shows where an element lay in the memory of its input, from dark to bright; the second
input has other hues. Pointing at an element highlights it everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfm_core.inspect.tensors.shapes import Index
from tfm_core.inspect.tensors.sight import NEW, OperationResult, TensorView
from tfm_core.plots.sheet import Board, Cells, mixed
from tfm_core.probe.types import Array
from tfm_core.sentences import N_

# Lightness rises along both, so that order is seen with every kind of colour vision and in grey.
FIRST = ("#3b2f73", "#33638d", "#1f8f88", "#4dbb6a", "#c3dd3b", "#fde56b")
SECOND = ("#4a1236", "#8c2350", "#c8453f", "#ee7f3a", "#fbb44e", "#fde9b3")
_GREY = ""
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


def colours_of(
    seen: OperationResult, picked: Index | None = None, used: Collection[int] = ()
) -> tuple[Colours, Colours]:
    """Return the colours of the inputs of an operation, and those of its result."""
    sizes = tuple(tensor.storage.size for tensor in seen.before)
    with_origin = len(sizes) > 1 or any(
        # the numbers differ from their places, so places must be written too
        (tensor.storage != tensor.storage_origins).any()
        for tensor in seen.before
    )
    is_new = seen.operation.kind in {"computes", "makes", "places"}
    of_inputs = Colours(sizes, with_origin, used=used)
    return of_inputs, Colours(sizes, with_origin and not is_new, is_new, picked, used)


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
        texts, says = [[N_("none")]], N_("no elements")
        none = np.zeros((1, 1))
        marks = {(0, 0): "out"}
        panels = [Cells(values=none, fills=[[_GREY]], texts=texts, says=says, marks=marks)]
    else:
        panels = _panels(look, _parts(look, title, colours), _scale(look.values, colours))
    return Board(title, tuple(panels), name, sign, facts=(*facts(look), *extra))


def facts(look: TensorView) -> tuple[str, ...]:
    """Return shape, axes, strides, offset, order and type as short texts."""
    return (
        N_("shape {sizes}", sizes=str(look.shape)),
        " × ".join(look.axes) or N_("no axes"),
        N_("strides {sizes}", sizes=str(look.strides)),
        N_("offset {n}", n=look.offset),
        N_("contiguous") if look.is_contiguous else N_("not contiguous"),
        N_("{type} on {device}", type=look.dtype, device=look.device),
    )


def _parts(look: TensorView, title: str, colours: Colours) -> dict[str, Array]:
    """Return what a tensor's cells have of their own, in arrays of its shape."""
    made: dict[str, Array] = {}
    for flat, index in enumerate(np.ndindex(*look.shape)):
        origin = int(look.origins[index])
        is_new = origin == NEW
        name = f"y{flat}" if is_new else f"e{origin}"
        mark = "out" if is_new and not colours.by_value else ""
        if index == colours.picked:
            mark = "picked"
        elif not is_new and origin in colours.used:
            mark = "used"
        says = N_(
            "{element} = {value:.6g}, place {n} in memory",
            element=title + "".join(f"[{i}]" for i in index),
            value=float(look.values[index]),
            n=int(look.visits[flat]),
        )
        own = {"fills": _GREY, "says": says, "corners": "", "names": name, "marks": mark}
        own["lights"] = " ".join([name, *(f"e{one}" for one in colours.used)])
        if not is_new:
            element = colours.name(origin)
            own["says"] = N_("{facts}, element {name}", facts=says, name=element)
            own |= {"fills": colours.fill(origin), "lights": name}
            own["corners"] = element if colours.with_origin else ""
        for part, value in own.items():
            made.setdefault(part, np.empty(look.shape, dtype=object))[index] = value
    return made


def _scale(values: Array, colours: Colours) -> dict[str, Any]:
    """Return how numbers are coloured and written."""
    finite = values[np.isfinite(values)]
    look: dict[str, Any] = {"digits": 0 if (finite == np.round(finite)).all() else 2}
    if colours.by_value:
        is_share = bool((values >= 0).all() and (values <= 1).all())
        look["scale"] = "share" if is_share else "signed"
        look["top"] = float(np.abs(finite).max(initial=0))
    return look


def _panels(look: TensorView, parts: dict[str, Array], scale: dict[str, Any]) -> list[Cells]:
    def cells(index: Index, **names: Any) -> Cells:
        """Return a slice along the last two axes, or the only row."""
        own = {name: np.atleast_2d(part[index]) for name, part in parts.items()}
        marks = own.pop("marks")
        places = {(i, j): marks[i, j] for i, j in np.argwhere(marks != "").tolist()}
        texts = {name: part.tolist() for name, part in own.items()}
        values = np.atleast_2d(look.values[index])
        return Cells(values=values, marks=places, **texts, **scale, **names)

    if look.values.ndim < 2:
        if look.values.size > _MAX_IN_ROW:
            return [cells((), wraps=True)]
        columns = tuple(map(str, range(look.values.size))) if look.values.ndim else ()
        return [cells((), columns=columns, column_title=look.axes[-1] if columns else "")]
    rows, columns = (tuple(map(str, range(size))) for size in look.shape[-2:])
    return [
        cells(
            index,
            rows=rows,
            columns=columns,
            row_title=look.axes[-2],
            column_title=look.axes[-1],
            title=", ".join(f"{axis} = {i}" for axis, i in zip(look.axes, index, strict=False)),
        )
        for index in np.ndindex(*look.shape[:-2])
    ]


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
    parts: dict[str, list[str]] = {"says": [], "fills": [], "corners": [], "names": []}
    marks = {}
    for index, (value, origin) in enumerate(zip(look.storage, look.storage_origins, strict=True)):
        reads, is_new = order.get(index, []), origin == NEW
        times = ", ".join([*(f"{n + 1}." for n in reads[:8]), *(["…"] if len(reads) > 8 else [])])
        when = N_("read {times}", times=times) if reads else N_("never read")
        says = N_("place {n}: {value:.6g}, {when}", n=index, value=value.item(), when=when)
        corner = f"{reads[0] + 1}." if len(reads) == 1 else f"{len(reads)}×" if reads else ""
        if not reads or (is_new and not colours.by_value):
            marks[0, index] = "out"
        parts["says"].append(says)
        parts["fills"].append(colours.fill(int(origin)) if reads and not is_new else _GREY)
        parts["corners"].append(corner)
        parts["names"].append(f"m{title}{index}" if is_new else f"e{origin}")
    texts: dict[str, Any] = {name: [row] for name, row in parts.items()}
    scale = _scale(look.storage, colours)
    return Board(
        title, (Cells(values=look.storage[None], marks=marks, wraps=True, **texts, **scale),)
    )
