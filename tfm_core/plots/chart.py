"""One grammar of figures: a table, and the marks that draw it.

``chart`` draws named series, ``cells`` a matrix. Words are those of ``plotly.express``, whose
functions take five times as long as the ``graph_objects`` used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column
from tfm_core.plots import described
from tfm_core.plots.kinds import (
    COLORWAY,
    band,
    layout_of,
    legend_to,
    reference_line,
    ticks,
)
from tfm_core.sentences import N_, Sentence

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["lines", "points", "bars", "bands"]
Values = str | Sequence[str] | Mapping[str, str]
Look = Mapping[str, Any]
"""``colour``, ``dash``, ``width`` and ``shape`` of a line, ``symbol`` and ``size`` of its points,
``pattern`` of bars; whatever else it holds are settings of the trace."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LOOKS: tuple[Look, ...] = tuple(
    {"colour": COLORWAY[n % len(COLORWAY)], "dash": DASHES[n % len(DASHES)]} for n in range(24)
)
MAX_MARKED = 40
"""Points of a line that each get a marker."""


class Details(TypedDict, total=False):
    """What a chart may show beside its series, and how large it is."""

    ends: tuple[str, str]  # columns of the ends of an interval
    text: str  # a column that is written beside the marks
    hover: Sequence[str]  # columns that the pointer reads, too
    marked: int  # a line of at most so many points has a mark at each
    labels: Mapping[str, str]  # titles of columns, where others say more than those declared
    across: Mapping[str, Any]  # settings of the axes, beside those that the columns declare
    up: Mapping[str, Any]
    orientation: Literal["v", "h"]  # "h": numbers run to the right, rows are read downwards
    ticks: Sequence[str]  # names of the places from 0 on the axis without numbers
    reference: Mapping[str, Any] | None  # a line to compare with, as for ``reference_line``
    height: int  # pixels
    top: int  # margins in pixels, larger for a legend above the figure or texts beside it
    right: int
    showlegend: bool
    barmode: Literal["stack", "group"]
    bargap: float
    hovermode: str


def chart(
    table: pd.DataFrame,
    kind: Kind = "lines",
    *,
    x: Values,
    y: Values,
    colour: str = "",
    looks: Sequence[Look] | Mapping[Any, Look] = LOOKS,
    **details: Unpack[Details],
) -> go.Figure:
    """Draw a table. x, y: its columns; the one of the numbers may be several, a series each.

    They are named by a mapping or by themselves; their axis is that of a declared one, or of
    ``value``. colour: a column that names the series. looks: of the series, in their order or by
    what they are called in the table.
    """
    columns: Mapping[str, Column] = table.attrs.get("columns", {})
    is_flat = details.get("orientation") == "h"
    place, of = (y, x) if is_flat else (x, y)
    assert isinstance(place, str)
    if not isinstance(of, str | Mapping):
        of = dict(zip(of, of, strict=True))
    number = of if isinstance(of, str) else next((one for one in of if one in columns), "value")
    across, up = (number, place) if is_flat else (place, number)
    read = [columns.get(name, Column()) for name in (across, up)]
    labels = details.get("labels", {})
    axes = [
        {"title": labels.get(name, column.title), **column.axis}
        for name, column in zip((across, up), read, strict=True)
    ]
    if names := details.get("ticks"):
        axes[is_flat] |= ticks(names)
    if is_flat:
        axes[1]["autorange"] = "reversed"
    axes = [{**axes[0], **details.get("across", {})}, {**axes[1], **details.get("up", {})}]
    order = (1, 0) if is_flat else (0, 1)  # what a place is called, then its number
    said = [(axes[n]["title"], "xy"[n], read[n].form) for n in order]
    for n, own in enumerate(details.get("hover", ())):
        said.append((columns[own].title, f"customdata[{n}]", columns[own].form))
    if is_flat and "text" in details and isinstance(of, str):
        low, high = min(0.0, table[of].min()), max(0.0, table[of].max())
        axes[0].setdefault("range", (low, high + 0.3 * (high - low or 1)))  # room for texts
        axes[1] |= {"ticklabelstandoff": _NUMBER} if low < 0 else {}
    traces: list[dict[str, Any]] = []
    for name, look, rows, value in _series(table, of, colour, looks):
        ends = (value, place) if is_flat else (place, value)
        traces += _traces(kind, table, rows, ends, look, details)
        traces[-1].setdefault("name", name)
        traces[-1].setdefault("hovertemplate", _hover(said, traces[-1]["name"]))
        traces[-1]["meta"] = _heard(traces[-1], axes, is_flat=is_flat)
    layout: dict[str, Any] = {
        "height": 90 + _ROW * table[place].nunique() if is_flat else 340,
        "top": 36 if len(traces) > 1 else 8,
        "right": 48 if is_flat and "text" in details else 8,
        **{name: one for name, one in details.items() if name in _OF_LAYOUT},
    }
    figure = go.Figure(traces, layout_of(x=axes[0], y=axes[1], **layout))
    if reference := details.get("reference"):
        reference_line(figure, **reference)
    return figure


def _heard(
    trace: Mapping[str, Any], axes: Sequence[Mapping[str, Any]], *, is_flat: bool
) -> Sentence | None:
    """Return what a screen reader says of a series. axes: settings of x and y."""
    x, y = trace["x"], trace["y"]
    if not len(y):
        return None
    is_bar = trace["type"] == "bar"
    is_share = str(axes[not is_flat].get("tickformat")).endswith("%")
    title = axes[0 if is_bar and is_flat else 1]["title"]
    name = trace["name"] or title or N_("Values")
    name = described.plain(name if isinstance(name, str) else str(name))
    if is_bar:
        places, values = (y, x) if is_flat else (x, y)
        return described.bars(name, (places, axes[is_flat]), values, is_share=is_share)
    return described.scatter(name, x, y, has_line="lines" in trace["mode"], is_share=is_share)


_ROW, _NUMBER = 32, 42  # pixels: of a row, and of what is written left of a bar
_OF_LAYOUT = ("height", "top", "right", "showlegend", "barmode", "bargap", "hovermode")


def _traces(
    kind: Kind,
    table: pd.DataFrame,
    rows: Any,
    columns: tuple[str, str],
    look: Look,
    details: Details,
) -> list[dict[str, Any]]:
    take = partial(_column, table, rows)
    x, y = map(take, columns)
    trace: dict[str, Any] = {"x": x, "y": y}
    below: list[dict[str, Any]] = []
    if hover := details.get("hover"):
        trace["customdata"] = table[[*hover]].to_numpy()[rows]
    if text := details.get("text"):
        trace["text"] = table[text].to_numpy()[rows].tolist()
    if ends := details.get("ends"):
        low, high = map(take, ends)
        letter = "x" if details.get("orientation") == "h" else "y"
        if kind == "bands":
            below = band(x, low, high, look["colour"], showlegend=False)
        else:
            up, down = high - trace[letter], trace[letter] - low
            whiskers = {"array": up, "arrayminus": down, "symmetric": False, "thickness": 1.5}
            trace[f"error_{letter}"] = {"type": "data", **whiskers}
    if kind == "bars":
        outside = {"textposition": "outside", "cliponaxis": False} if text else {}
        shape = {"type": "bar", "orientation": details.get("orientation", "v"), **outside}
        return [{**shape, **trace, **_bar(look)}]
    line = "lines+markers" if len(x) <= details.get("marked", MAX_MARKED) else "lines"
    mode = "markers" if kind == "points" else line
    return [*below, {"type": "scatter", "mode": mode, **trace, **_scatter(look, kind)}]


def _series(
    table: pd.DataFrame,
    of: str | Mapping[str, str],
    colour: str,
    looks: Sequence[Look] | Mapping[Any, Look],
) -> Iterator[tuple[str | None, Look, Any, str]]:
    """Yield the name of each series, its look, which rows it has, and the column of its values."""
    names = (
        of if isinstance(of, Mapping) else dict.fromkeys(table[colour] if colour else [None], of)
    )
    if isinstance(looks, Mapping):
        looks = {name: look for name, look in looks.items() if name in names}
        names = {name: names[name] for name in looks}
    else:
        looks = {name: looks[n % len(looks)] for n, name in enumerate(names)}
    groups = table[colour].to_numpy(object) if colour else None
    for name, one in names.items():
        if isinstance(of, Mapping):
            yield one, looks[name], slice(None), name
        else:
            yield name, looks[name], slice(None) if groups is None else groups == name, one


def _hover(said: Sequence[tuple[str, str, str]], name: str | None) -> Sentence:
    """Return what the pointer reads: title, place and form of a number a line, and the name."""
    lines, values = [], {"name": name or ""}
    for n, (title, place, form) in enumerate(said):
        values |= {f"t{n}": title, f"p{n}": f"%{{{place}{form and ':' + form}}}"}
        lines.append(f"{{t{n}}}: {{p{n}}}" if title else f"{{p{n}}}")
    return Sentence("<br>".join(lines) + "<extra>{name}</extra>", values)


def _scatter(look: Look, kind: Kind) -> dict[str, Any]:
    """Return a look as settings of a line with points, or of points."""
    more = dict(look)
    own = {"colour": "color", "dash": "dash", "width": "width", "shape": "shape"}
    line = {name: more.pop(ours) for ours, name in own.items() if ours in more}
    marker = {name: more.pop(name) for name in ("symbol", "size") if name in more}
    marker |= more.pop("marker", {})
    if kind == "points":
        return {"marker": {"color": line["color"], **marker}, **more}
    return {"line": line, "marker": marker, **more}


def _bar(look: Look) -> dict[str, Any]:
    """Return a look as settings of bars."""
    more = {name: one for name, one in look.items() if name not in ("colour", "dash", "pattern")}
    pattern = {"pattern": {"shape": look["pattern"], "solidity": 0.25}} if "pattern" in look else {}
    return {"marker": {"color": look["colour"], **pattern}, **more}


def _column(table: pd.DataFrame, rows: Any, name: str) -> Any:
    """Return the numbers of some rows as float32, texts as they are."""
    values = table[name].to_numpy()[rows]  # a frame of some rows takes a tenth of a millisecond
    is_text = len(values) and isinstance(values[0], str)
    return values.tolist() if is_text else np.asarray(values, np.float32)


Texts = Sequence[Sequence[str]]
"""Of all cells (rows, columns)."""


class CellDetails(TypedDict, total=False):
    """What cells may show beside their colours, and how large their figure is."""

    says: str | Texts  # what the pointer reads of each cell, or a template of plotly's
    texts: str | Texts  # what is written in each, likewise
    legend: str  # what the scale is of, where it is drawn
    gap: int  # pixels between cells
    trace: Mapping[str, Any]  # settings that are different
    height: int
    top: int
    right: int
    plot_bgcolor: str  # of holes
    title: Mapping[str, str]


def cells(
    values: npt.ArrayLike,
    scale: Sequence[Any],
    ends: tuple[float, float],
    *,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **details: Unpack[CellDetails],
) -> go.Figure:
    """Draw a matrix (rows, columns), the first row on top; NaN is a hole.

    ends: of the colour scale. x, y: settings of the axes; ``names`` are of columns and rows, of
    which many are named every n-th.
    """
    low, high = ends
    gap, own = details.get("gap", 1), details.get("trace", {})
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": np.asarray(values, np.float32),
        "colorscale": list(scale),
        "zmin": low,
        "zmax": high,
        "xgap": gap,
        "ygap": gap,
        "showscale": "legend" in details,
    }
    if "legend" in details:
        trace["colorbar"] = legend_to(low, high, details["legend"])
    if says := details.get("says"):
        is_one = isinstance(says, str)
        trace |= {"hovertemplate": says} if is_one else {"hovertext": says, "hoverinfo": "text"}
    if texts := details.get("texts"):
        trace |= {"texttemplate": "%{text}", "textfont": {"size": 11}}
        trace["texttemplate" if isinstance(texts, str) else "text"] = texts
    layout: dict[str, Any] = {"height": 340}
    layout |= {name: one for name, one in details.items() if name in _OF_CELLS}
    x, y = _named(x), {"autorange": "reversed", **_named(y)}
    trace |= own
    if len(trace["z"]):
        title = trace.get("colorbar", {}).get("title", {}).get("text")
        name = described.plain(title or N_("Map"))
        trace["meta"] = described.cells(name, trace["z"], (trace.get("y"), y), (trace.get("x"), x))
    return go.Figure([trace], layout_of(x=x, y=y, **layout))


_OF_CELLS = ("height", "top", "right", "plot_bgcolor", "title")
_MAX_NAMES = 40


def _named(axis: Mapping[str, Any]) -> dict[str, Any]:
    """Return an axis whose every place, or every n-th of many, carries its name."""
    names = axis.get("names", ())
    shown = range(0, len(names), -(-len(names) // _MAX_NAMES) or 1)
    named: dict[str, Any] = {"showgrid": False, "zeroline": False}
    if names:
        named = ticks([names[i] for i in shown])
        named |= {"tickvals": list(shown), "tickfont": {"size": 12 if len(shown) <= 16 else 11}}
    return named | {name: one for name, one in axis.items() if name != "names"}


def texts_of(
    template: str,
    *,
    rows: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Sequence[Any]],
    **values: npt.ArrayLike,
) -> list[list[Sentence]]:
    """Return what the pointer reads of each cell: a template and what fills it, by name.

    rows, columns: a value for each row and for each column. values: for each cell.
    """
    names = [*rows, *columns, *values]
    down = [np.asarray(one, object)[:, None] for one in rows.values()]
    grids = [*down, *(np.asarray(one, object) for one in (*columns.values(), *values.values()))]
    filled = [grid.tolist() for grid in np.broadcast_arrays(*grids)]
    return [
        [Sentence(template, dict(zip(names, cell, strict=True))) for cell in zip(*row, strict=True)]
        for row in zip(*filled, strict=True)
    ]


def bands_of(colours: Sequence[str]) -> list[tuple[float, str]]:
    """Return a colour scale of equal bands without transitions."""
    n = len(colours)
    return [(at, colour) for i, colour in enumerate(colours) for at in (i / n, (i + 1) / n)]


def name_colours(figure: go.Figure, names: Mapping[str, str]) -> None:
    """Add a legend of colours by name to a figure of cells."""
    for name, colour in names.items():
        marker = {"color": colour, "symbol": "square", "size": 10}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
