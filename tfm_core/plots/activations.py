"""Activations drawn: curves and slopes, and the numbers of a run that go into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import BLUE, GREEN, GREY, ORANGE, PURPLE
from tfm_core.sentences import N_

Floats = npt.NDArray[np.floating[Any]]
LOOKS: dict[str, tuple[str, str]] = {
    "relu": (BLUE, "solid"),
    "gelu": (ORANGE, "dash"),
    "gelu_tanh": (GREEN, "dot"),
    "swiglu": (PURPLE, "dashdot"),
}


def lines(curves: Mapping[str, tuple[str, Floats, Floats]], chosen: str, y_title: str) -> go.Figure:
    """Draw functions of u: activation -> label, u (n,), values (n,); the chosen one is thick."""
    figure = go.Figure()
    for name, (label, u, values) in curves.items():
        colour, dash = LOOKS.get(name, (GREY, "solid"))
        figure.add_scatter(
            x=np.asarray(u, np.float32),
            y=np.asarray(values, np.float32),
            name=label,
            mode="lines",
            line={"color": colour, "dash": "solid", "width": 5}
            if name == chosen
            else {"color": colour, "dash": dash, "width": 1.5},
            hovertemplate="u = %{x:.2f}: %{y:.3f}<extra>" + label + "</extra>",
        )
    figure.add_vline(x=0, line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_xaxes(title={"text": N_("u, one number of the hidden layer before it")})
    figure.update_yaxes(title={"text": y_title})
    return figure.update_layout(height=320, margin={"l": 8, "r": 8, "t": 8, "b": 8})


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
    figure.add_vline(x=0, line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_xaxes(title={"text": N_("u, one number of the hidden layer before it")})
    figure.update_yaxes(
        title={"text": N_("share of the numbers")}, tickformat=".1%", rangemode="tozero"
    )
    return figure.update_layout(
        height=300, margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=True
    )
