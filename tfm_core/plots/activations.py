"""Activations drawn: curves and slopes, and the numbers of a run that go into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out, reference_line
from tfm_core.plots.palette import BLUE, GREEN, GREY, ORANGE, PURPLE
from tfm_core.sentences import N_

Floats = npt.NDArray[np.floating[Any]]
LOOKS: dict[str, tuple[str, str]] = {
    "relu": (BLUE, "solid"),
    "gelu": (ORANGE, "dash"),
    "gelu_tanh": (GREEN, "dot"),
    "swiglu": (PURPLE, "dashdot"),
}

_X_TITLE = N_("u, one number of the hidden layer before it")


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
        y={"title": N_("share of the numbers"), "tickformat": ".1%", "rangemode": "tozero"},
        showlegend=True,
    )
