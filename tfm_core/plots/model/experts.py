"""Mixture of experts: which token goes where, and how busy each expert is over the training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.chart import DASHES, cells, chart, wide
from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import COLORWAY, reference_line, sequential, ticks
from tfm_core.plots.palette import ThemeName
from tfm_core.plots.training.curves import (
    MeasuredCurves,
    Measurements,
    ReferenceLine,
    learning_curve,
)
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def routes(tokens: Sequence[str], gates: Floats, theme: ThemeName = "light") -> go.Figure:
    """Draw the share (T, E) of each expert in each token; experts are counted from 1."""
    n_tokens, n_experts = gates.shape
    share = "%{z:.2f}<extra></extra>"
    names = {"title": N_("token"), "tickangle": -45, **ticks([short(token) for token in tokens])}
    return cells(
        gates.T,
        sequential(theme),
        (0, 1),
        height=int(np.clip(130 + 26 * n_experts, 190, 520)),
        x=names,
        y={"title": N_("expert"), "autorange": "reversed", "dtick": 1, "showgrid": False},
        trace={
            "x": np.arange(n_tokens),
            "y": np.arange(1, n_experts + 1),
            "customdata": np.broadcast_to(np.array(tokens, object), (n_experts, n_tokens)),
            "hovertemplate": N_(
                "{token}, expert {n}: {share}", token="%{customdata}", n="%{y}", share=share
            ),
        },
    )


def loads(steps: Sequence[int], shares: Floats, at: int | None = None) -> go.Figure:
    """Draw the share of all choices (steps, E) that falls on each expert. at: the step in sight."""
    n_experts = shares.shape[1]
    figure = chart(
        wide(steps, {N_("expert {n}", n=n + 1): shares[:, n] for n in range(n_experts)}),
        looks=[{"line": {"color": colour, "dash": dash}} for dash in DASHES for colour in COLORWAY],
        hover=lambda name: N_("step %{{x:,}}: %{{y:.1%}}<extra>{name}</extra>", name=name),
        height=320,
        x={"title": N_("step")},
        y={"title": N_("share of choices"), "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=True,
    )
    reference_line(figure, y=1 / n_experts, words=N_("alike"))
    if at is not None:
        reference_line(figure, x=at)
    return figure


def balance(steps: Floats, values: Floats, total_steps: int) -> go.Figure:
    """Draw how unequally each batch was spread over the experts: 1 where all get alike."""
    figure = learning_curve(
        MeasuredCurves(Measurements(N_("imbalance"), steps, values)),
        y_title=N_("imbalance of experts"),
        marks=[ReferenceLine(1.0, N_("alike"), is_lower_bound=True)],
        total_steps=total_steps,
    )
    return figure.update_yaxes(rangemode="normal")
