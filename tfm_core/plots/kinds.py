"""The look that all figures share, and what figures of one kind have in common.

Figures carry their template themselves, because plotly's default becomes one with placeholder
colours as soon as Streamlit is imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import (
    BACKGROUNDS,
    BLUE,
    CARDS,
    DIVERGING,
    GREEN,
    GREY,
    INKS,
    LINES,
    OCHRE,
    ORANGE,
    PURPLE,
    SCALES,
    SKY,
    VERMILION,
    ThemeName,
)
from tfm_core.sentences import N_

FONT = (
    "Inter, 'Noto Sans KR', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
)
COLORWAY = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, OCHRE, GREY)


@cache
def template(theme: ThemeName) -> go.layout.Template:
    """Return the template of a theme: transparent, a quiet grid, our colours, Korean glyphs."""
    ink, line, background = INKS[theme], LINES[theme], BACKGROUNDS[theme]
    axis = {
        "gridcolor": line,
        "linecolor": line,
        "zerolinecolor": line,
        "ticks": "",
        "ticklabelstandoff": 3,  # keeps the two zeros of a corner, and tokens and cells, apart
        "automargin": True,
        "spikecolor": GREY,
        "spikethickness": 1,
        "spikedash": "dot",
        "title": {"standoff": 8, "font": {"size": 13}},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": ink},
            "title": {"font": {"size": 15}, "x": 0, "xanchor": "left"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": COLORWAY,
            "colorscale": {"sequential": SCALES[theme], "diverging": DIVERGING[theme]},
            "margin": {"l": 48, "r": 16, "t": 32, "b": 44},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {
                "bgcolor": CARDS[theme],
                "bordercolor": line,
                "font": {"family": FONT, "color": ink},
            },
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": ink},
            "dragmode": "zoom",
            "hovermode": "closest",
        },
        data={
            "heatmap": [{"colorbar": {"outlinewidth": 0, "thickness": 12, "tickcolor": line}}],
            "scatter": [{"line": {"width": 2}, "marker": {"line": {"color": background}}}],
        },
    )


def layout_of(
    *,
    height: int,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    top: int = 8,
    right: int = 8,
    **layout: Any,
) -> dict[str, Any]:
    """Return a layout: its height in pixels, small margins and two axes.

    x, y: settings of the axes. top, right: margins in pixels, larger for a
    legend above the figure or texts beside it. layout: further settings of the layout.
    """
    margin = {"l": 8, "r": right, "t": top, "b": 8}
    return {"height": height, "margin": margin, "xaxis": {**x}, "yaxis": {**y}, **layout}


def lay_out(figure: go.Figure, **settings: Any) -> go.Figure:
    """Give a figure a layout, of settings as for ``layout_of``, and return it."""
    return figure.update_layout(layout_of(**settings))


def ticks(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis without a grid whose places, from 0, carry these names."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "showgrid": False,
        "zeroline": False,
    }


def legend_to(
    low: float, high: float, title: str = N_("weight"), largest: float = 0.0
) -> dict[str, Any]:
    """Return the legend of a scale, which says its ends and, of weights, what lies beyond."""
    middle = (low + high) / 2
    legend = {  # above the map, where it takes no width from it
        "orientation": "h",
        "thickness": 8,
        "len": 0.6,
        "x": 0.5,
        "xanchor": "center",
        "y": 1.0,
        "yanchor": "bottom",
        "ypad": 4,
        "tickformat": ".2~g",
        "tickmode": "array",
        "title": {"text": title, "side": "right", "font": {"size": 12}},
        "tickvals": [low, middle, high],
    }
    if largest <= high:
        return legend
    return {**legend, "ticktext": ["0", f"{middle:.2g}", f"≥ {high:.2g}"]}


def panels(
    n: int, columns: int, gaps: tuple[float, float]
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the places of n panels, row by row: the settings of their axes, and their names.

    gaps: beside and below them, of 1. Those of one column share their x axis, below the last; those
    of a row are read on the first y axis.
    """
    rows = max(1, -(-n // columns))
    width, height = ((1 - gap * (k - 1)) / k for gap, k in zip(gaps, (columns, rows), strict=True))
    for number in range(n):
        row, column = divmod(number, columns)
        left, top = column * (width + gaps[0]), 1 - row * (height + gaps[1])
        suffix = str(number + 1) if number else ""
        x, y = "" if columns == 1 else suffix, suffix
        domains = (left, min(1.0, left + width)), (max(0.0, top - height), top)
        axes: dict[str, dict[str, Any]] = {
            f"xaxis{x}": {"domain": domains[0], "anchor": f"y{y}"},
            f"yaxis{y}": {"domain": domains[1], "anchor": f"x{x}"},
        }
        if column:
            axes[f"yaxis{y}"] |= {"showticklabels": False, "title": None}
        yield axes, f"x{x}", f"y{y}"


def picture_trace(picture: npt.NDArray[np.uint8]) -> dict[str, Any]:
    """Return a picture (C, height, width) or (height, width), its pixels as they are."""
    channels = picture[None] if picture.ndim == 2 else picture
    colours = np.broadcast_to(channels, (3, *channels.shape[1:]))
    return {"type": "image", "z": np.moveaxis(colours, 0, -1).astype(np.uint8), "hoverinfo": "skip"}


HOLES = "rgba(147, 147, 147, 0.3)"
"""Behind cells: about the grey of ``MASKED`` on either background."""
HIDDEN: dict[str, Any] = {
    "showticklabels": False,
    "showgrid": False,
    "zeroline": False,
    "constrain": "domain",
}
"""An axis of a picture, of which nothing but its title is seen."""


def picture_axes(size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the axes x and y of a square picture. size: pixels to a side."""
    ends = (-0.5, size - 0.5)
    return {**HIDDEN, "range": ends}, {**HIDDEN, "range": ends[::-1], "scaleanchor": "x"}


def frame(
    left: float, top: float, right: float, bottom: float, *, colour: str, width: float
) -> dict[str, Any]:
    """Return a rectangle to add as a shape."""
    line = {"color": colour, "width": width}
    return {"type": "rect", "x0": left, "y0": top, "x1": right, "y1": bottom, "line": line}


def band(
    x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, colour: str, **more: Any
) -> list[dict[str, Any]]:
    """Return the area between two lines. more: of the lower line, which the legend names."""
    edge = {"type": "scatter", "x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    edge |= {name: more.pop(name) for name in ("xaxis", "yaxis", "legendgroup") if name in more}
    return [
        {**edge, "y": high, "showlegend": False},
        {**edge, "y": low, "fill": "tonexty", "fillcolor": pale(colour), **more},
    ]


def pale(colour: str, opacity: float = 0.18) -> str:
    """Return a ``#rrggbb`` colour with little ink, for areas."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def reference_line(
    figure: go.Figure,
    *,
    x: float | None = None,
    y: float | None = None,
    words: str = "",
    is_below: bool = False,
    colour: str = "",
) -> None:
    """Add a dotted grey line at ``x`` or ``y``, to compare with, and words at its right end.

    is_below: the words stand under the line, where no curve goes. colour: the line is dashed and
    has this colour, and its words stand above the figure.
    """
    line = {"color": colour or GREY, "width": 2 if colour else 1}
    line["dash"] = "dash" if colour else "dot"
    note: dict[str, Any] = {"text": words, "font": {"size": 11, "color": GREY}}
    if x is not None:
        more = {"annotation": note, "annotation_position": "bottom right"} if words else {}
        figure.add_vline(x=x, line=line, **more)
    if y is not None:
        note |= {"xanchor": "right", "yanchor": "top" if is_below else "bottom", "x": 1}
        if figure.layout.yaxis.type == "log":  # plotly wants the exponent of words, not of lines
            note |= {"y": math.log10(y)}
        if colour:
            figure.add_hline(y=y, line=line)
            place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1.02}
            note |= {**place, "yanchor": "bottom", "font": {"color": colour}, "showarrow": False}
            figure.add_annotation(note)
        else:
            figure.add_hline(y=y, line=line, **({"annotation": note} if words else {}))


def is_crowded_above(figure: go.Figure, *, y: float, room: float) -> bool:
    """Return whether a curve of the first panel ends in the ``room`` above ``y``."""
    for trace in figure.data:
        if trace.y is not None and len(trace.y) and trace.yaxis in (None, "y"):
            xs, ys = np.asarray(trace.x, float), np.asarray(trace.y, float)
            late = ys[xs >= 0.75 * xs[-1]]
            if ((late > y) & (late < y + room)).any():
                return True
    return False
