"""One grammar of figures: a table, and the marks that draw it.

``chart`` draws named series, ``cells`` a matrix. Words are those of ``plotly.express``, whose
functions take five times as long as the ``graph_objects`` used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column
from tfm_core.plots.kinds import (
    COLORWAY,
    band,
    layout_of,
    legend_to,
    panels,
    picture_axes,
    picture_trace,
    reference_line,
    ticks,
)
from tfm_core.sentences import Sentence

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["lines", "points", "bars", "bands"]
Values = str | Sequence[str] | Mapping[str, str]
Look = Mapping[str, Any]
"""``colour``, ``dash``, ``width`` and ``shape`` of a line, ``symbol`` and ``size`` of its points,
``pattern`` of bars; whatever else it holds are settings of the trace."""
SVG_DASHES = {
    "solid": "",
    "dash": "7 4",
    "dot": "2 3",
    "dashdot": "7 3 2 3",
    "longdash": "12 4",
    "longdashdot": "12 3 2 3",
    "12px,3px,2px,3px": "10 3 2 3",
}
"""Plotly's dashes → those of an SVG."""
DASHES = tuple(SVG_DASHES)
LOOKS: tuple[Look, ...] = tuple(
    {"colour": colour, "dash": DASHES[(row + column) % len(DASHES)]}
    for row in range(len(DASHES))
    for column, colour in enumerate(COLORWAY)
)
"""Of series in their order: all different, neighbours in colour and in dash."""
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
    facet: str  # a column: a panel for each of its values, below one another on one x axis
    n_beside: int  # panels in a row, each with its own x axis
    gaps: tuple[float, float]  # beside and below panels, of 1
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
    layout: Mapping[str, Any]  # further settings


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
    is_flat = details.get("orientation") == "h"
    position, numbers = (y, x) if is_flat else (x, y)
    assert isinstance(position, str)
    if not isinstance(numbers, str | Mapping):
        numbers = dict(zip(numbers, numbers, strict=True))
    declared: Mapping[Any, Column] = table.attrs.get("columns", {})
    number = (
        numbers
        if isinstance(numbers, str)
        else next((one for one in numbers if one in declared), "value")
    )
    names = (number, position) if is_flat else (position, number)
    facet, n_beside = details.get("facet"), details.get("n_beside", 1)
    parts = [*table.groupby(facet, sort=False)] if facet and len(table) else [("", table)]
    if not isinstance(looks, Mapping):  # the same in all panels
        series = (
            numbers
            if isinstance(numbers, Mapping)
            else table[colour].unique()
            if colour
            else [None]
        )
        looks = {name: looks[n % len(looks)] for n, name in enumerate(series)}
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    places = panels(len(parts), n_beside, details.get("gaps", _GAPS))
    for (value, part), (panel, *on) in zip(parts, places, strict=True):
        columns = [declared.get(name, Column()) for name in names]
        if facet:  # names the axis that differs from panel to panel
            index = int(n_beside == 1)
            columns[index] = declared.get(value, replace(columns[index], title=value))
        axes = _axes(part, names, columns, details)
        order = (1, 0) if is_flat else (0, 1)  # what a place is called, then its number
        readings = [(axes[n]["title"], "xy"[n], columns[n].form) for n in order]
        for n, column in enumerate(details.get("hover", ())):
            readings.append((declared[column].title, f"customdata[{n}]", declared[column].form))
        if "unified" in details.get("hovermode", ""):
            readings = readings[1:]  # the place is read once for all
        for name, look, rows, values in _series(part, numbers, colour, looks):
            ends = (values, position) if is_flat else (position, values)
            series_traces = _traces(kind, part, rows, ends, look, details)
            series_traces[-1].setdefault("name", name)
            series_traces[-1].setdefault(
                "hovertemplate", _hover(readings, series_traces[-1]["name"])
            )
            if facet:
                series_traces = _placed(series_traces, on)
                once = {"legendgroup": str(name), "showlegend": value == parts[0][0]}
                series_traces[-1] = once | series_traces[-1]
            traces += series_traces
        layout |= _merged(panel, axes) if facet else {}
    layout = {
        "height": 90 + _ROW * table[position].nunique() if is_flat else 340,
        "top": 36 if len(traces) > 1 else 8,
        "right": 48 if is_flat and "text" in details else 8,
        **{name: one for name, one in details.items() if name in _OF_LAYOUT},
        **details.get("layout", {}),
        **layout,
    }
    figure = go.Figure(traces, layout_of(x=axes[0], y=axes[1], **layout))
    if reference := details.get("reference"):
        reference_line(figure, **reference)
    return figure


def _placed(traces: Sequence[Mapping[str, Any]], on: Sequence[str]) -> list[dict[str, Any]]:
    """Return traces that are drawn on two axes, by their names."""
    return [{**trace, "xaxis": on[0], "yaxis": on[1]} for trace in traces]


def _merged(panel: Mapping[str, Any], axes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the axes of a panel with further settings, of x and y."""
    return {
        name: {**axis, **settings}
        for (name, settings), axis in zip(panel.items(), axes, strict=True)
    }


def _axes(
    table: pd.DataFrame, names: tuple[str, str], columns: Sequence[Column], details: Details
) -> list[dict[str, Any]]:
    """Return the settings of x and y. names: their columns; read: what is declared of them."""
    is_flat, labels = details.get("orientation") == "h", details.get("labels", {})
    x, y = (
        {"title": labels.get(name, column.title), **column.axis}
        for name, column in zip(names, columns, strict=True)
    )
    if names_shown := details.get("ticks"):
        (y if is_flat else x).update(ticks(names_shown))
    if is_flat:
        y["autorange"] = "reversed"
    if is_flat and "text" in details and names[0] in table:
        low, high = min(0.0, table[names[0]].min()), max(0.0, table[names[0]].max())
        x = {"range": (low, high + 0.3 * ((high - low) or 1)), **x}  # room for texts
        y |= {"ticklabelstandoff": _NUMBER} if low < 0 else {}
    return [{**x, **details.get("across", {})}, {**y, **details.get("up", {})}]


_GAPS = (0.07, 0.07)
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
        if kind == "bands" and np.isfinite(low).any():
            group = look.get("legendgroup")
            below = band(x, low, high, look["colour"], showlegend=False, legendgroup=group)
        elif kind != "bands":
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
    looks: Mapping[Any, Look],
) -> Iterator[tuple[str | None, Look, Any, str]]:
    """Yield the name of each series, its look, which rows it has, and the column of its values."""
    groups, values = table[colour].factorize() if colour else (None, [None])
    names = {name: n for n, name in enumerate(of if isinstance(of, Mapping) else values)}
    for name, look in looks.items():
        if name not in names:
            continue
        if isinstance(of, Mapping):
            yield of[name], look, slice(None), name
        else:
            yield name, look, slice(None) if groups is None else groups == names[name], of


def _hover(readings: Sequence[tuple[str, str, str]], name: str | None) -> Sentence:
    """Return what the pointer reads: title, place and form of a number a line, and the name."""
    lines, values = [], {"name": name or ""}
    for n, (title, variable, form) in enumerate(readings):
        values |= {f"t{n}": title, f"p{n}": f"%{{{variable}{form and ':' + form}}}"}
        lines.append(f"{{t{n}}}: {{p{n}}}" if title else f"{{p{n}}}")
    return Sentence("<br>".join(lines) + "<extra>{name}</extra>", values)


def _scatter(look: Look, kind: Kind) -> dict[str, Any]:
    """Return a look as settings of a line with points, or of points."""
    rest = dict(look)
    line_keys = {"colour": "color", "dash": "dash", "width": "width", "shape": "shape"}
    line = {name: rest.pop(ours) for ours, name in line_keys.items() if ours in rest}
    marker = {name: rest.pop(name) for name in ("symbol", "size") if name in rest}
    marker |= rest.pop("marker", {})
    if kind == "points":
        return {"marker": {"color": line["color"], **marker}, **rest}
    return {"line": line, "marker": marker, **rest}


def _bar(look: Look) -> dict[str, Any]:
    """Return a look as settings of bars."""
    rest = {
        name: setting for name, setting in look.items() if name not in ("colour", "dash", "pattern")
    }
    pattern = {"pattern": {"shape": look["pattern"], "solidity": 0.25}} if "pattern" in look else {}
    return {"marker": {"color": look["colour"], **pattern}, **rest}


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
    each_says: Sequence[Texts]  # likewise, of several matrices
    texts: str | Texts  # what is written in each, likewise
    legend: str  # what the scale is of, where it is drawn
    gap: int  # pixels between cells
    facets: Sequence[str]  # of several matrices: what each is called, below it
    n_beside: int  # of them in a row
    gaps: tuple[float, float]  # beside and below them, of 1
    picture: npt.NDArray[np.uint8]  # (C, height, width): the cells are patches and lie over it
    trace: Mapping[str, Any]  # settings that are different
    height: int
    top: int
    right: int
    plot_bgcolor: str  # of holes
    title: Mapping[str, str]


def cells(
    values: npt.ArrayLike,
    scale: Literal["share", "signed"] | Sequence[Any],
    ends: tuple[float, float],
    *,
    x: Mapping[str, Any] = MappingProxyType({}),
    y: Mapping[str, Any] = MappingProxyType({}),
    **details: Unpack[CellDetails],
) -> go.Figure:
    """Draw a matrix (rows, columns), the first row on top; NaN is a hole. Or several, (N, …).

    scale: its colours, or whether the numbers have a sign, of which the theme knows the colours.
    ends: of the scale. x, y: settings of the axes; ``names`` are of columns and rows, of
    which many are named every n-th.
    """
    low, high = ends
    grids, gap = np.asarray(values, np.float32), details.get("gap", 1)
    trace: dict[str, Any] = {
        "type": "heatmap",
        **({"autocolorscale": True} if isinstance(scale, str) else {"colorscale": list(scale)}),
        "zmin": low,
        "zmax": high,
        "xgap": gap,
        "ygap": gap,
        "showscale": "legend" in details,
    }
    if "legend" in details:
        trace["colorbar"] = legend_to(low, high, details["legend"])
    if texts := details.get("texts"):
        trace |= {"texttemplate": "%{text}", "textfont": {"size": 11}}
        trace["texttemplate" if isinstance(texts, str) else "text"] = texts
    layout: dict[str, Any] = {"height": 340}
    layout |= {name: setting for name, setting in details.items() if name in _OF_CELLS}
    x, y = _named(x), {"autorange": "reversed", **_named(y)}
    below: list[dict[str, Any]] = []
    if (picture := details.get("picture")) is not None:
        size = picture.shape[-1] / grids.shape[-1]  # pixels to a side of a patch
        trace["x"] = trace["y"] = (np.arange(grids.shape[-1]) + 0.5) * size - 0.5
        # plotly draws a heatmap above a picture, and clicks are heard on the first trace
        below, (x, y) = [picture_trace(picture)], picture_axes(picture.shape[-1])
        layout |= {"hovermode": "closest", "dragmode": False}
    trace |= {**_said(details.get("says", "")), **details.get("trace", {})}
    if (facets := details.get("facets")) is None:
        return go.Figure([{**trace, "z": grids}, *below], layout_of(x=x, y=y, **layout))
    traces: list[dict[str, Any]] = []
    n_beside = details.get("n_beside", 1)
    places = panels(len(facets), n_beside, details.get("gaps", _GAPS))
    for n, (grid, name, (panel, *on)) in enumerate(zip(grids, facets, places, strict=True)):
        panel_trace = {
            **trace,
            "z": grid,
            **_said(details["each_says"][n] if "each_says" in details else ""),
        }
        traces += _placed([{**panel_trace, "showscale": trace["showscale"] and not n}, *below], on)
        across = {"showticklabels": n + n_beside >= len(facets), **x, "title": name}
        square = {"scaleanchor": on[0], "constraintoward": "top"} if below else {}
        layout |= _merged(panel, (across, {**y, **square}))
    return go.Figure(traces, layout_of(x=x, y=y, showlegend=False, **layout))


def _said(says: str | Texts) -> dict[str, Any]:
    """Return what the pointer reads as settings of a heatmap."""
    if not says:
        return {}
    is_one = isinstance(says, str)
    return {"hovertemplate": says} if is_one else {"hovertext": says, "hoverinfo": "text"}


_OF_CELLS = ("height", "top", "right", "plot_bgcolor", "title")
_MAX_NAMES = 40


def _named(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return an axis whose every place, or every n-th of many, carries its name."""
    names = settings.get("names", ())
    shown = range(0, len(names), -(-len(names) // _MAX_NAMES) or 1)
    named: dict[str, Any] = {"showgrid": False, "zeroline": False}
    if names:
        named = ticks([names[i] for i in shown])
        named |= {"tickvals": list(shown), "tickfont": {"size": 12 if len(shown) <= 16 else 11}}
    return named | {name: setting for name, setting in settings.items() if name != "names"}


def texts_of(
    template: npt.ArrayLike,
    *,
    rows: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Sequence[Any]],
    **values: npt.ArrayLike,
) -> list[list[Sentence]]:
    """Return what the pointer reads of each cell: a template (or one a cell) and what fills it.

    rows, columns: a value for each row and for each column. values: for each cell.
    """
    names = [*rows, *columns, *values]
    down = [np.asarray(part, object)[:, None] for part in rows.values()]
    across = [np.asarray(part, object) for part in (template, *columns.values(), *values.values())]
    templates, *rest = np.broadcast_arrays(across[0], *down, *across[1:])
    return [
        [
            Sentence(template_of_cell, dict(zip(names, cell, strict=True)))
            for template_of_cell, *cell in zip(*row, strict=True)
        ]
        for row in zip(templates.tolist(), *(grid.tolist() for grid in rest), strict=True)
    ]


def bands_of(colours: Sequence[str]) -> list[tuple[float, str]]:
    """Return a colour scale of equal bands without transitions."""
    n = len(colours)
    return [(at, colour) for i, colour in enumerate(colours) for at in (i / n, (i + 1) / n)]


def name_colours(figure: go.Figure, names: Mapping[str, str]) -> None:
    """Add a legend of colours by name to a figure of cells."""
    for name, colour in names.items():
        marker = {"color": colour, "symbol": "square", "size": 10}
        figure.add_scatter(
            x=[None], y=[None], mode="markers", marker=marker, name=name, hoverinfo="skip"
        )
