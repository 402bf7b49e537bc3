"""Kinds of positions compared: which notice a shuffle, which learn, which extrapolate."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import Floats
from tfm_core.plots.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from tfm_core.plots.positions import BORDER, MARGIN, axes
from tfm_core.plots.thinning import thin
from tfm_core.sentences import N_

KINDS: dict[str, dict[str, str]] = {  # one look for each kind of positions, in every figure
    "none": {"color": GREY, "dash": "dot", "symbol": "x"},
    "sinusoidal": {"color": BLUE, "dash": "solid", "symbol": "circle"},
    "learned": {"color": VERMILION, "dash": "dash", "symbol": "square"},
    "rotary": {"color": GREEN, "dash": "dashdot", "symbol": "diamond"},
    "alibi": {"color": PURPLE, "dash": "longdash", "symbol": "triangle-up"},
    "causal": {"color": ORANGE, "dash": "dot", "symbol": "star"},
}


def noticed(changes: Mapping[str, tuple[str, float]]) -> go.Figure:
    """Draw how much each model noticed: label -> kind of positions and change, 0 = not at all."""
    labels = list(changes)
    values = np.array([value for _, value in changes.values()], np.float32)
    figure = go.Figure(
        go.Bar(
            y=[escape(label, quote=False).replace(", ", ",<br>") for label in labels],  # phones
            x=values,
            orientation="h",
            marker={"color": [KINDS.get(k, KINDS["causal"])["color"] for k, _ in changes.values()]},
            text=[f"{100 * value:.3g} %" if value >= 1e-5 else "0: a bag" for value in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.2e}<extra></extra>",
        )
    )
    axes(figure, N_("mean change of a vector"), "")
    figure.update_xaxes(range=[0, float(max(values.max(initial=0), 0.01)) * 1.35], tickformat=".0%")
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(height=90 + 44 * len(labels), margin={**MARGIN, "t": 8})
    return figure


def race(
    series: Mapping[str, tuple[str, Floats, Floats]],
    x_title: str,
    y_title: str,
    *,
    trained: float | None = None,
) -> go.Figure:
    """Draw shares (0 to 1): kind of positions -> label, x (n,), y (n,); nan leaves a gap.

    trained: where the trained lengths end, drawn as a line.
    """
    figure = go.Figure()
    for kind, (label, x, y) in series.items():
        look = KINDS[kind]
        kept = thin(x, np.nan_to_num(y))
        figure.add_scatter(
            x=np.asarray(x, np.float32)[kept],
            y=np.asarray(y, np.float32)[kept],
            name=escape(label, quote=False),
            mode="lines+markers" if len(kept) <= 40 else "lines",
            line={"color": look["color"], "dash": look["dash"]},
            marker={"symbol": look["symbol"], "size": 7},
            hovertemplate=N_(
                "{x_title} %{{x:,}}: %{{y:.1%}}<extra>{label}</extra>",
                x_title=x_title,
                label=escape(label),
            ),
        )
    axes(figure, x_title, y_title)
    figure.update_yaxes(range=[0, 1.04], tickformat=".0%")
    if trained is not None:
        figure.add_vline(
            x=trained,
            line={"color": GREY, "dash": "dot", "width": 1},
            annotation={"text": BORDER, "font": {"size": 11, "color": GREY}},
            annotation_position="bottom right",
        )
    return figure
