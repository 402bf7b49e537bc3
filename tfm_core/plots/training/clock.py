"""Addition modulo n: the table of all sums, and the frequencies of an embedding over a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.discover.neurons import Neurons
from tfm_core.plots.kinds import lay_out, pale, sequential
from tfm_core.plots.palette import BLUE, GREEN, GREY, ThemeName
from tfm_core.sentences import N_

Bools = npt.NDArray[np.bool_]
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


_ACROSS, _PITCH = 3, 2.5  # circles in a row, and their distance in radii


def neuron_clocks(found: Neurons, keys: Sequence[int], *, height: int) -> go.Figure:
    """Draw the neurons of each key frequency on a circle.

    A neuron stands at its angle on the clock of a + b; on the rim all of it is that frequency.
    """
    figure = go.Figure()
    turn = np.linspace(0, 2 * np.pi, 73)
    for place, key in enumerate(keys):
        x, y = _PITCH * (place % _ACROSS), -1.15 * _PITCH * (place // _ACROSS)
        figure.add_scatter(
            x=x + np.sin(turn),
            y=y + np.cos(turn),
            mode="lines",
            line={"color": GREY, "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
        chosen = found.of(key)
        angle, strength = found.angle[chosen], found.strength[chosen]
        figure.add_scatter(
            x=x + strength * np.sin(angle),
            y=y + strength * np.cos(angle),
            mode="markers",
            marker={"color": BLUE, "size": 5, "opacity": 0.6},
            customdata=np.stack([strength, np.degrees(angle)], -1),
            name=N_("frequency {k}", k=key),
            showlegend=False,
            hovertemplate=N_(
                "frequency {k}: {share}, at {angle}°",
                k=key,
                share="%{customdata[0]:.1%}",
                angle="%{customdata[1]:.0f}<extra></extra>",
            ),
        )
        figure.add_annotation(
            x=x,
            y=y - 1.25,
            text=f"{key}: {int(chosen.sum())}",
            showarrow=False,
        )
    hidden = {"visible": False}
    return lay_out(
        figure,
        height=height,
        top=10,
        x={**hidden, "constrain": "domain"},
        y={**hidden, "scaleanchor": "x"},
    )
