"""The look that all figures share, and what figures of one kind have in common.

Figures carry their template themselves, because plotly's default becomes one with placeholder
colours as soon as Streamlit is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import (
    BACKGROUNDS,
    BLUE,
    CARDS,
    GREEN,
    GREY,
    INKS,
    LINES,
    OCHRE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    ThemeName,
)

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
            "colorscale": {"sequential": sequential(theme)},
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


def sequential(theme: ThemeName) -> list[tuple[float, str]]:
    """Return the scale for weights from 0 to 1: nothing is the background, all is strong blue."""
    if theme == "light":
        return [(0.0, "#f6f4ee"), (0.25, "#bcd7ec"), (0.6, "#4a95cf"), (1.0, "#0b3f70")]
    return [(0.0, "#1a1e25"), (0.25, "#1f4a70"), (0.6, "#3f95d6"), (1.0, "#d8ecfb")]


def lay_out(
    figure: go.Figure,
    *,
    height: int,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    top: int = 8,
    right: int = 8,
    **layout: Any,
) -> go.Figure:
    """Give a figure its height in pixels, small margins and its two axes, and return it.

    x, y: settings of the axes; a ``title`` is a text. top, right: margins in pixels, larger for a
    legend above the figure or texts beside it. layout: further settings of the layout.
    """
    margin = {"l": 8, "r": right, "t": top, "b": 8}
    figure.update_layout(height=height, margin=margin, xaxis=_axis(x), yaxis=_axis(y), **layout)
    return figure


def ticks(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis without a grid whose places, from 0, carry these names."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "showgrid": False,
        "zeroline": False,
    }


HIDDEN: dict[str, Any] = {"visible": False, "constrain": "domain"}
"""An axis of a picture."""


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


def error_bars(up: npt.ArrayLike, down: npt.ArrayLike, **more: Any) -> dict[str, Any]:
    """Return asymmetric error bars."""
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, **more}


def band(
    x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, colour: str, **more: Any
) -> list[go.Scatter]:
    """Return the area between two lines. more: of the lower line, which the legend names."""
    edge = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    shared = {name: more.pop(name) for name in ("xaxis", "yaxis", "legendgroup") if name in more}
    return [
        go.Scatter(y=high, showlegend=False, **edge, **shared),
        go.Scatter(y=low, fill="tonexty", fillcolor=pale(colour), **edge, **shared, **more),
    ]


def pale(colour: str, opacity: float = 0.18) -> str:
    """Return a ``#rrggbb`` colour with little ink, for areas."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def bars(
    names: Sequence[Any],
    values: npt.ArrayLike,
    colour: str | Sequence[str],
    *,
    texts: Sequence[str] = (),
    **more: Any,
) -> go.Bar:
    """Return bars that run to the right, one a name, with a text behind each if there are texts.

    colour: of all, or of each. more: further settings of the trace.
    """
    behind = {"text": list(texts), "textposition": "outside", "cliponaxis": False} if texts else {}
    marker = {"color": colour, **more.pop("marker", {})}
    return go.Bar(
        y=list(names),
        x=np.asarray(values, np.float32),
        orientation="h",
        marker=marker,
        **{**behind, **more},
    )


def reference_line(
    figure: go.Figure,
    *,
    x: float | None = None,
    y: float | None = None,
    words: str = "",
    is_below: bool = False,
) -> None:
    """Add a dotted grey line at ``x`` or ``y``, to compare with, and words at its right end.

    is_below: the words stand under the line, where no curve goes.
    """
    line = {"color": GREY, "width": 1, "dash": "dot"}
    note = {"text": words, "font": {"size": 11, "color": GREY}}
    if x is not None:
        more = {"annotation": note, "annotation_position": "bottom right"} if words else {}
        figure.add_vline(x=x, line=line, **more)
    if y is not None:
        place = {"xanchor": "right", "yanchor": "top" if is_below else "bottom", "x": 1}
        figure.add_hline(y=y, line=line, **({"annotation": note | place} if words else {}))


def is_crowded_above(figure: go.Figure, *, y: float, room: float) -> bool:
    """Return whether a curve of the first panel ends in the ``room`` above ``y``."""
    for trace in figure.data:
        if trace.y is not None and len(trace.y) and trace.yaxis in (None, "y"):
            xs, ys = np.asarray(trace.x, float), np.asarray(trace.y, float)
            late = ys[xs >= 0.75 * xs[-1]]
            if ((late > y) & (late < y + room)).any():
                return True
    return False


def rule_above(figure: go.Figure, *, y: float, colour: str, words: str) -> None:
    """Add a dashed line at ``y``, named above the figure."""
    figure.add_hline(y=y, line={"color": colour, "dash": "dash", "width": 2})
    figure.add_annotation(
        text=words,
        font={"color": colour},
        showarrow=False,
        xref="paper",
        x=0,
        xanchor="left",
        yref="paper",
        y=1.02,
        yanchor="bottom",
    )


def from_zero(xs: Iterable[npt.ArrayLike]) -> dict[str, Any]:
    """Return an axis that begins at 0 for one point alone: plotly would take it from -1."""
    values = {float(x) for each in xs for x in np.asarray(each)}
    return {"range": [0, 2 * max(values) or 1]} if len(values) == 1 else {}


def _axis(settings: Mapping[str, Any]) -> dict[str, Any]:
    if "title" not in settings:
        return dict(settings)
    return {**settings, "title": {"text": settings["title"]}}
