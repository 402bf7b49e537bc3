"""One grammar of figures: a table, and the marks that draw it.

``chart`` draws named series, ``cells`` a matrix. Words are those of ``plotly.express``, whose
functions take five times as long as the ``graph_objects`` used here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out

Kind = Literal["auto", "lines", "markers", "lines+markers", "bars"]
Series = Mapping[Any, tuple[Any, Any]]
"""Name → x (n,) and y (n,)."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def wide(x: Any, columns: Mapping[Any, Any]) -> Series:
    """Return the series of a wide table: every column over the same x (n,)."""
    return {name: (x, y) for name, y in columns.items()}


def chart(
    series: Series,
    kind: Kind = "lines+markers",
    *,
    looks: Sequence[Mapping[str, Any]] = ({},),
    hover: str | Callable[[str], str] | None = None,
    marked: int | None = None,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **layout: Any,
) -> go.Figure:
    """Draw series as lines, points or bars, on axes with these settings.

    looks: settings of the traces, in the order of the series; after the last they begin again.
    hover: a template, or what makes one of a series' name. marked: lines of at most so many points
    have a mark at each.
    """
    figure = go.Figure()
    for number, (name, (across, up)) in enumerate(series.items()):
        trace = {
            "x": _values(across),
            "y": _values(up),
            "name": name,
            "hovertemplate": hover(name) if callable(hover) else hover,
            **looks[number % len(looks)],
        }
        if kind == "bars":
            figure.add_bar(**trace)
        else:
            mode = kind if marked is None or len(across) <= marked else "lines"
            figure.add_scatter(**{"mode": None if mode == "auto" else mode, **trace})
    return lay_out(figure, x=x, y=y, **{"height": 340, **layout})


def _values(values: Any) -> Any:
    """Return numbers as float32, texts as they are."""
    is_text = isinstance(next(iter(values), None), str)
    return list(values) if is_text else np.asarray(values, np.float32)


def cells(
    values: npt.ArrayLike,
    scale: Sequence[Any],
    ends: tuple[float | None, float | None],
    *,
    trace: Mapping[str, Any],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **layout: Any,
) -> go.Figure:
    """Draw a matrix (rows, columns) with thin gaps, and without a colour bar.

    ends: of the colour scale. trace: hover, texts, and settings that are different.
    """
    usual = {"zmin": ends[0], "zmax": ends[1], "showscale": False, "xgap": 1, "ygap": 1}
    settings = usual | dict(trace)
    figure = go.Figure(
        go.Heatmap(z=np.asarray(values, np.float32), colorscale=list(scale), **settings)
    )
    return lay_out(figure, x=x, y=y, **layout)


def bands_of(colours: Sequence[str]) -> list[tuple[float, str]]:
    """Return a colour scale of equal bands without transitions."""
    n = len(colours)
    return [(at, colour) for i, colour in enumerate(colours) for at in (i / n, (i + 1) / n)]


def add_legend(figure: go.Figure, name: str, colour: str) -> None:
    """Add the name of a colour to the legend of a figure."""
    marker = {"color": colour, "symbol": "square", "size": 10}
    figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
