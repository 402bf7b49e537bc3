"""Additive, scaled dot-product and multi-head attention against each other."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.kinds import from_zero, lay_out, reference_line
from tfm_core.plots.palette import BLUE, GREEN, VERMILION
from tfm_core.plots.training.stage import thin
from tfm_core.probe.types import Floats
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
    return lay_out(
        figure,
        height=340,
        top=36,
        x={"title": x_title, **from_zero(x for _label, x, _y in series.values())},
        y={"title": y_title, "range": [0, 1.04], "tickformat": ".0%"},
    )


def times(
    series: Mapping[str, tuple[str, Floats, Floats]], x_title: str, y_title: str
) -> go.Figure:
    """Draw milliseconds (n,) over lengths (n,), both axes logarithmic: a power is a line."""
    figure = go.Figure()
    for name, (label, x, y) in series.items():
        _line(figure, name, label, x, y, "%{x} tokens: %{y:.2f} ms")
    y_axis = {"title": y_title, "type": "log", "dtick": "D2", "tickformat": "~g"}
    return lay_out(figure, height=340, top=36, x=_lengths(series, x_title), y=y_axis)


def ratios(
    series: Mapping[str, tuple[str, Floats, Floats]], x_title: str, y_title: str
) -> go.Figure:
    """Draw how many times as long a model takes as another; at 1 they are even."""
    figure = go.Figure()
    for name, (label, x, y) in series.items():
        _line(figure, name, label, x, y, "%{x} tokens: %{y:.2f} times")
    reference_line(figure, y=1)
    y_axis = {"title": y_title, "rangemode": "tozero"}
    return lay_out(figure, height=340, top=36, x=_lengths(series, x_title), y=y_axis)


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


def _lengths(series: Mapping[str, tuple[str, Floats, Floats]], title: str) -> dict[str, Any]:
    shown = sorted({float(n) for _, x, _ in series.values() for n in x})
    texts = [f"{n:.0f}" for n in shown]
    return {"title": title, "type": "log", "tickvals": shown, "ticktext": texts}
