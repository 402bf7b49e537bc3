"""How a model fares while its heads are taken away, least important first, against chance."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.knockouts.measure import Pruning, Score
from tfm_core.plots.palette import GREY, VERMILION
from tfm_core.sentences import N_


def pruning_curve(curves: Pruning, measure: str = "accuracy") -> go.Figure:
    """Draw the ordered curve, and random orders as their mean and range.

    measure: "accuracy", as a share, or "loss", in nats.
    """
    is_share = measure == "accuracy"
    form = ".1%" if is_share else ".3f"
    chance = np.array([_values(curve, is_share) for curve in curves.by_chance])
    figure = go.Figure()
    removed = list(curves.removed)
    if len(chance):
        edge = {"x": removed, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        figure.add_trace(go.Scatter(y=chance.max(0), showlegend=False, **edge))
        figure.add_trace(
            go.Scatter(
                y=chance.min(0),
                fill="tonexty",
                fillcolor="rgba(125, 133, 146, 0.18)",
                name=N_("range of {n} random orders", n=len(chance)),
                **edge,
            )
        )
        figure.add_trace(
            _line(removed, chance.mean(0), N_("random order, in the mean"), "dash", form)
        )
    figure.add_trace(
        _line(
            removed, _values(curves.ordered, is_share), N_("least important first"), "solid", form
        )
    )
    figure.update_layout(
        height=330,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
    )
    figure.update_xaxes(title={"text": N_("heads taken away")}, range=[-0.3, removed[-1] + 0.3])
    if is_share:
        figure.update_yaxes(title={"text": N_("accuracy")}, range=[-0.02, 1.04], tickformat=".0%")
    else:
        figure.update_yaxes(title={"text": N_("loss (nats)")}, rangemode="tozero")
    return figure


def _line(
    x: list[int],
    y: npt.NDArray[np.float64],
    name: str,
    dash: Literal["solid", "dash"],
    form: str,
) -> go.Scatter:
    is_ordered = dash == "solid"
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers" if is_ordered else "lines",
        line={"color": VERMILION if is_ordered else GREY, "dash": dash, "width": 2.5},
        marker={"size": 6},
        hovertemplate=N_(
            "%{{x}} heads gone: %{{y:{form}}}<extra>{name}</extra>", form=form, name=name
        ),
    )


def _values(curve: tuple[Score, ...], is_share: bool) -> npt.NDArray[np.float64]:
    return np.array([score.accuracy if is_share else score.loss for score in curve])
