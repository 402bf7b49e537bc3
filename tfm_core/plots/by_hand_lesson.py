"""A few gradient steps as two curves: the loss, and the weight of the target attention."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tfm_core.inspect.by_hand.attention import Floats
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, PURPLE, SKY, VERMILION
from tfm_core.sentences import N_

_COLOURS = (GREEN, VERMILION, PURPLE, OCHRE, SKY, GREY)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def lesson(losses: Floats, wanted: Mapping[str, Floats], step: int) -> go.Figure:
    """Draw losses (S + 1,) and, by name, the target weights (S + 1,); step: marked by a line."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.16)
    steps = np.arange(len(losses), dtype=np.float32)
    figure.add_scatter(
        x=steps, y=losses, name=N_("loss"), line={"color": BLUE}, row=1, col=1,
        hovertemplate=N_("step %{x}: %{y:.4f} nats<extra>loss</extra>"),
    )  # fmt: skip
    for i, (name, weights) in enumerate(wanted.items()):
        look = {"color": _COLOURS[i % 6], "dash": _DASHES[i % 6]}
        figure.add_scatter(
            x=steps, y=weights, name=name, line=look, row=2, col=1,
            hovertemplate="step %{x}: %{y:.4f}<extra>" + "weight</extra>",
        )  # fmt: skip
    figure.add_vline(x=step, line={"color": GREY, "dash": "dot"})
    figure.update_yaxes(title={"text": N_("loss (nats)")}, rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title={"text": N_("target weight")}, range=(0, 1.05), row=2, col=1)
    figure.update_xaxes(title={"text": N_("gradient step")}, row=2, col=1)
    figure.update_layout(height=360, margin={"l": 8, "r": 8, "t": 40, "b": 8})
    return figure
