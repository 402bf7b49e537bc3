"""Addition modulo n: the table of all sums, and the frequencies of an embedding over a training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out, pale, sequential
from tfm_core.plots.palette import GREEN, GREY, ThemeName
from tfm_core.probe.types import Bools
from tfm_core.sentences import N_

STATES = (N_("new, wrong"), N_("new, right"), N_("trained, wrong"), N_("trained, right"))
_COLOURS = (pale(GREY, 0.3), pale(GREEN, 0.5), GREY, GREEN)  # the trained ones are darker


def sums(is_right: Bools, is_trained: Bools, *, height: int) -> go.Figure:
    """Draw all sums (n, n): which were trained, and which the model gets right."""
    state = 2 * is_trained.astype(np.int8) + is_right
    scale = [
        (at, colour)
        for n, colour in enumerate(_COLOURS)
        for at in (n / len(_COLOURS), (n + 1) / len(_COLOURS))
    ]
    figure = go.Figure(
        go.Heatmap(
            z=state,
            zmin=-0.5,
            zmax=len(_COLOURS) - 0.5,
            colorscale=scale,
            showscale=False,
            customdata=np.array(STATES, object)[state],
            hovertemplate=N_(
                "{a} + {b}: {state}", a="%{y}", b="%{x}", state="%{customdata}<extra></extra>"
            ),
        )
    )
    for name, colour in zip(STATES, _COLOURS, strict=True):  # the legend
        marker = {"color": colour, "symbol": "square", "size": 10}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False}
    return lay_out(
        figure,
        height=height,
        top=30,
        x={"title": N_("b"), "constrain": "domain", **axis},
        y={"title": N_("a"), "scaleanchor": "x", "autorange": "reversed", **axis},
    )


def frequencies(
    steps: npt.NDArray[np.int64],
    shares: npt.NDArray[np.floating[Any]],
    *,
    height: int,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the share (S, K) of each frequency, from 1, in the power of the embedding."""
    figure = go.Figure(
        go.Heatmap(
            z=shares.T.astype(np.float32),
            x=steps,
            y=np.arange(1, shares.shape[1] + 1),
            zmin=0,
            colorscale=sequential(theme),
            showscale=False,
            hovertemplate=N_(
                "step {step}, frequency {k}: {share}",
                step="%{x}",
                k="%{y}",
                share="%{z:.1%}<extra></extra>",
            ),
        )
    )
    return lay_out(
        figure,
        height=height,
        x={"title": N_("step"), "showgrid": False, "range": [int(steps[0]), int(steps[-1])]},
        y={"title": N_("frequency"), "showgrid": False},
    )
