"""Deletion curves: how fast the model loses its answer when patches are taken away."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from tfm_core.inspect.attention.deletion import Deletion
from tfm_core.inspect.attention.explanations import EXPLANATIONS
from tfm_core.plots.kinds import lay_out
from tfm_core.plots.palette import BLUE, GREEN, GREY, VERMILION
from tfm_core.sentences import N_

_LOOKS: dict[str, dict[str, str]] = {
    "attention": {"color": BLUE, "dash": "dash", "symbol": "circle"},
    "rollout": {"color": GREEN, "dash": "dot", "symbol": "square"},
    "relevance": {"color": VERMILION, "dash": "solid", "symbol": "diamond"},
}
_OTHER = {"color": GREY, "dash": "dashdot", "symbol": "cross"}


def deletion_curves(
    deletion: Deletion, *, class_name: str = "", names: Mapping[str, str] | None = None
) -> go.Figure:
    """Draw a line for each explanation, and random order with its range as the mark to beat.

    class_name: the class whose probability is watched. names: labels of the explanations.
    Legend entries say the area under the curve: the lower, the better.
    """
    labels = {name: choice.label for name, choice in EXPLANATIONS.items()} | dict(names or {})
    figure = go.Figure(_range(deletion))
    figure.add_trace(
        go.Scatter(
            x=deletion.removed,
            y=deletion.random,
            name=N_("random order, area {random_area:.2f}", random_area=deletion.random_area),
            mode="lines",
            line={"color": GREY, "width": 2},
            hovertemplate=N_("%{x:.0%} removed: %{y:.1%}<extra>random order</extra>"),
        )
    )
    for name, curve in deletion.curves.items():
        look, label = _LOOKS.get(name, _OTHER), labels.get(name, name)
        figure.add_trace(
            go.Scatter(
                x=deletion.removed,
                y=curve,
                name=N_("{label}, area {areas:.2f}", label=label, areas=deletion.areas[name]),
                mode="lines+markers",
                line={"color": look["color"], "dash": look["dash"], "width": 2.5},
                marker={"symbol": look["symbol"], "size": 7},
                hovertemplate=N_(
                    "%{{x:.0%}} removed: %{{y:.1%}}<extra>{label}</extra>", label=label
                ),
            )
        )
    what = f"probability of “{class_name}”" if class_name else "probability of the class"
    return lay_out(
        figure,
        height=380,
        x={
            "title": N_("patches removed, most important first"),
            "range": [-0.01, 1.01],
            "tickformat": ".0%",
        },
        y={"title": what, "range": [-0.02, 1.04], "tickformat": ".0%"},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
    )


def _range(deletion: Deletion) -> list[go.Scatter]:
    """Return the band from the lowest to the highest random order."""
    shared = {"x": deletion.removed, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    return [
        go.Scatter(y=deletion.highest, showlegend=False, **shared),
        go.Scatter(
            y=deletion.lowest,
            fill="tonexty",
            fillcolor="rgba(125, 133, 146, 0.18)",
            name=N_("range of random orders"),
            **shared,
        ),
    ]
