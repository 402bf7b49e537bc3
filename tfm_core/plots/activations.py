"""Activations drawn: curves and slopes, and the numbers of a run that go into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out, reference_line
from tfm_core.plots.palette import BLUE, GREEN, GREY, HUES, ORANGE, PURPLE
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS

Floats = npt.NDArray[np.floating[Any]]
_X_TITLE = N_("u, a hidden value before it")


def lines(curves: Mapping[str, tuple[str, Floats, Floats]], chosen: str, y_title: str) -> go.Figure:
    """Draw functions of u: activation -> label, u (n,), values (n,); the chosen one is thick."""
    figure = go.Figure()
    for name, (label, u, values) in curves.items():
        look = ACTIVATIONS[name]
        figure.add_scatter(
            x=np.asarray(u, np.float32),
            y=np.asarray(values, np.float32),
            name=label,
            mode="lines",
            line={"color": HUES[look.colour], "dash": "solid", "width": 5}
            if name == chosen
            else {"color": HUES[look.colour], "dash": look.dash, "width": 1.5},
            hovertemplate="u = %{x:.2f}: %{y:.3f}<extra>" + label + "</extra>",
        )
    reference_line(figure, x=0)
    return lay_out(figure, height=320, x={"title": _X_TITLE}, y={"title": y_title})


def histogram(layers: Mapping[str, Floats], edges: Floats) -> go.Figure:
    """Draw where the numbers lie: layer -> share in each bin; edges (bins + 1,)."""
    figure = go.Figure()
    colours, dashes = (BLUE, ORANGE, GREEN, PURPLE, GREY), ("solid", "dash", "dot", "dashdot")
    for number, (name, shares) in enumerate(layers.items()):
        figure.add_scatter(
            x=((edges[1:] + edges[:-1]) / 2).astype(np.float32),
            y=np.asarray(shares, np.float32),
            name=name,
            mode="lines",
            line={
                "color": colours[number % len(colours)],
                "dash": dashes[number % len(dashes)],
                "shape": "hvh",
                "width": 2,
            },
            hovertemplate="u = %{x:.2f}: %{y:.2%}<extra>" + name + "</extra>",
        )
    reference_line(figure, x=0)
    return lay_out(
        figure,
        height=300,
        x={"title": _X_TITLE},
        y={"title": N_("share of values"), "tickformat": ".1%", "rangemode": "tozero"},
        showlegend=True,
    )
