"""Mixture of experts: which token goes where, and how busy each expert is over the training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import COLORWAY, lay_out, reference_line, sequential, ticks
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
    figure = go.Figure(
        go.Heatmap(
            z=gates.T.astype(np.float32),
            x=np.arange(n_tokens),
            y=np.arange(1, n_experts + 1),
            zmin=0,
            zmax=1,
            colorscale=sequential(theme),
            showscale=False,
            xgap=1,
            ygap=1,
            customdata=np.broadcast_to(np.array(tokens, object), (n_experts, n_tokens)),
            hovertemplate=N_("{token}, expert {n}: {share}", token="%{customdata}", n="%{y}",
                             share="%{z:.2f}<extra></extra>"),
        )
    )  # fmt: skip
    return lay_out(
        figure,
        height=int(np.clip(130 + 26 * n_experts, 190, 520)),
        x={"title": N_("token"), "tickangle": -45, "showgrid": False,
           **ticks([short(token) for token in tokens])},
        y={"title": N_("expert"), "autorange": "reversed", "dtick": 1, "showgrid": False},
    )  # fmt: skip


def loads(steps: Sequence[int], shares: Floats, at: int | None = None) -> go.Figure:
    """Draw the share of all choices (steps, E) that falls on each expert. at: the step in sight."""
    figure = go.Figure()
    n_experts = shares.shape[1]
    for n in range(n_experts):
        name = N_("expert {n}", n=n + 1)
        figure.add_scatter(
            x=np.asarray(steps, np.float32),
            y=shares[:, n].astype(np.float32),
            name=name,
            mode="lines+markers",
            line={
                "color": COLORWAY[n % len(COLORWAY)],
                "dash": _DASHES[n // len(COLORWAY) % len(_DASHES)],
            },
            hovertemplate=N_("step %{{x:,}}: %{{y:.1%}}<extra>{name}</extra>", name=name),
        )
    reference_line(figure, y=1 / n_experts, words=N_("alike"))
    if at is not None:
        reference_line(figure, x=at)
    return lay_out(
        figure,
        height=320,
        x={"title": N_("step")},
        y={"title": N_("share of choices"), "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=True,
    )


def balance(steps: Floats, values: Floats, total_steps: int) -> go.Figure:
    """Draw how unequally each batch was spread over the experts: 1 where all get alike."""
    figure = learning_curve(
        MeasuredCurves(Measurements(N_("imbalance"), steps, values)),
        y_title=N_("imbalance of experts"),
        marks=[ReferenceLine(1.0, N_("alike"), is_lower_bound=True)],
        total_steps=total_steps,
    )
    return figure.update_yaxes(rangemode="normal")
