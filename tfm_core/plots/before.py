"""Additive, scaled dot-product and multi-head attention against each other."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import Floats
from tfm_core.plots.palette import BLUE, GREEN, GREY, VERMILION
from tfm_core.plots.positions import MARGIN, axes, from_zero
from tfm_core.plots.thinning import thin
from tfm_core.sentences import N_

LOOKS: dict[str, dict[str, str]] = {  # one look for each model, in every figure
    "additive": {"color": VERMILION, "dash": "dash", "symbol": "square"},
    "one-head": {"color": BLUE, "dash": "solid", "symbol": "circle"},
    "many-heads": {"color": GREEN, "dash": "dashdot", "symbol": "diamond"},
}


def race(series: Mapping[str, tuple[str, Floats, Floats]], x_title: str, y_title: str) -> go.Figure:
    """Draw shares (0 to 1) while they learn: model -> label, x (n,), y (n,)."""
    figure = go.Figure()
    for name, (label, x, y) in series.items():
        kept = thin(x, y)
        _line(figure, name, label, np.asarray(x)[kept], np.asarray(y)[kept],
              f"{x_title} %{{x:,}}: %{{y:.1%}}")  # fmt: skip
    axes(figure, x_title, y_title)
    from_zero(figure, [x for _label, x, _y in series.values()])
    return figure.update_yaxes(range=[0, 1.04], tickformat=".0%")


def times(
    series: Mapping[str, tuple[str, Floats, Floats]], x_title: str, y_title: str
) -> go.Figure:
    """Draw milliseconds (n,) over lengths (n,), both axes logarithmic: a power is a line."""
    figure = go.Figure()
    for name, (label, x, y) in series.items():
        _line(figure, name, label, x, y, "%{x} tokens: %{y:.2f} ms")
    axes(figure, x_title, y_title)
    _lengths(figure, series)
    return figure.update_yaxes(type="log", dtick="D2", tickformat="~g")


def ratios(
    series: Mapping[str, tuple[str, Floats, Floats]], x_title: str, y_title: str
) -> go.Figure:
    """Draw how many times as long a model takes as another; at 1 they are even."""
    figure = go.Figure()
    for name, (label, x, y) in series.items():
        _line(figure, name, label, x, y, "%{x} tokens: %{y:.2f} times")
    axes(figure, x_title, y_title)
    _lengths(figure, series)
    figure.add_hline(y=1, line={"color": GREY, "dash": "dot", "width": 2})
    return figure.update_yaxes(rangemode="tozero")


def _line(figure: go.Figure, name: str, label: str, x: Floats, y: Floats, hover: str) -> None:
    look = LOOKS[name]
    figure.add_scatter(
        x=np.asarray(x, np.float32),
        y=np.asarray(y, np.float32),
        name=escape(label, quote=False),
        mode="lines+markers" if len(x) <= 40 else "lines",
        line={"color": look["color"], "dash": look["dash"]},
        marker={"symbol": look["symbol"], "size": 7},
        hovertemplate=N_("{hover}<extra>{label}</extra>", hover=hover, label=escape(label)),
    )


def _lengths(figure: go.Figure, series: Mapping[str, tuple[str, Floats, Floats]]) -> None:
    ticks = sorted({float(n) for _, x, _ in series.values() for n in x})
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{n:.0f}" for n in ticks])
    figure.update_layout(margin=MARGIN)
