"""What a model costs by part, how that grows, and what its activations do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tfm_core.facts.parameter_table import ParameterRow
from tfm_core.plots.chart import DASHES, chart, wide
from tfm_core.plots.kinds import lay_out, reference_line
from tfm_core.plots.palette import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    HUES,
    INKS,
    OCHRE,
    ORANGE,
    PURPLE,
    ThemeName,
)
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS

PART_COLOURS = {
    "embedding": COLOURS["key"],
    "recurrence": COLOURS["encoder"],
    "projections": COLOURS["query"],
    "scores": COLOURS["decoder"],
    "cross-attention": COLOURS["cross"],
    "feed-forward": COLOURS["value"],
    "output": OCHRE,
    "weights": COLOURS["query"],
    "gradients": COLOURS["gradient"],
    "optimiser": OCHRE,
    "activations": COLOURS["value"],
}
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def bars(values: Mapping[str, float], x_title: str, labels: Mapping[str, str]) -> go.Figure:
    """Draw each part as a bar with its value. labels: what each part is called."""
    names = [name for name, value in values.items() if value][::-1]
    figure = go.Figure(
        go.Bar(
            x=[values[name] for name in names],
            y=[labels[name] for name in names],
            orientation="h",
            marker={"color": [PART_COLOURS.get(name, GREY) for name in names]},
            text=[f"{values[name]:.3g}" for name in names],
            textposition="auto",
            textangle=0,  # beside a bar too short for it, never on its side
            hovertemplate="%{y}: %{x:,.4g}<extra></extra>",
        )
    )
    return lay_out(figure, height=60 + 38 * max(3, len(names)), x={"title": x_title}, y={})


def growth(
    xs: Sequence[float],
    parts: Mapping[str, Sequence[float]],
    x_title: str,
    y_title: str,
    labels: Mapping[str, str],
) -> go.Figure:
    """Draw how each part grows along one quantity; both axes are linear, so a square bends.

    labels: what each part is called. Parts that lie on one line share it, with all their names.
    """
    lines: list[tuple[list[str], Sequence[float]]] = []
    for name, values in parts.items():
        same = next((names for names, others in lines if np.allclose(values, others)), None)
        if same is not None:
            same.append(name)
        elif any(values):
            lines.append(([name], values))
    looks = [
        {"color": PART_COLOURS.get(names[-1], GREY), "width": 3 if "scores" in names else 2}
        for names, _values in lines
    ]
    return chart(
        wide(xs, {" = ".join(labels[name] for name in names): line for names, line in lines}),
        looks=[{"line": {**look, "dash": DASHES[i % len(DASHES)]}} for i, look in enumerate(looks)],
        hover=lambda name: "%{x:,}: %{y:,.4g}<extra>" + name + "</extra>",
        x={"title": x_title, "rangemode": "tozero"},
        y={"title": y_title, "rangemode": "tozero"},
    )


_KINDS = (  # what a module's name says -> its colour
    ("cross_attention", COLOURS["cross"]),
    ("attention", COLOURS["query"]),
    ("feed_forward", COLOURS["value"]),
    ("norm", GREY),
    ("embedding", COLOURS["key"]),
    ("positions", COLOURS["key"]),
    ("stem", COLOURS["key"]),
    ("output", OCHRE),
    ("head", OCHRE),
)
_FRAMES: dict[ThemeName, str] = {"light": "#e6e3da", "dark": "#2b313b"}  # what only holds others
_EDGES: dict[ThemeName, str] = {"light": "#fbfaf7", "dark": "#14171c"}


def treemap(rows: Sequence[ParameterRow], total: int, theme: ThemeName = "light") -> go.Figure:
    """Draw all parameters as areas, module within module; a click goes inside."""
    sizes: dict[str, int] = {}
    for row in rows:
        parts = row.here.split(".")
        for depth in range(1, len(parts) + 1):
            path = ".".join(parts[:depth])
            sizes[path] = sizes.get(path, 0) + row.n_parameters
    paths = [path for path, n in sizes.items() if n]
    holders = {"model", *(path.rpartition(".")[0] for path in paths)}
    plain = {path for path in holders if _colour(path) is None}
    shown = ["model", *paths]
    colours = [_FRAMES[theme] if path in plain else _colour(path) or GREY for path in shown]
    inks = [INKS[theme] if path in plain else "#ffffff" for path in shown]
    figure = go.Figure(
        go.Treemap(
            ids=shown,
            labels=["model", *(path.rpartition(".")[2] for path in paths)],
            parents=["", *(path.rpartition(".")[0] or "model" for path in paths)],
            values=[total, *(sizes[path] for path in paths)],
            branchvalues="total",
            marker={"colors": colours, "line": {"color": _EDGES[theme], "width": 1.5}},
            hovertemplate=N_("%{id}<br>%{value:,} parameters, %{percentRoot:.1%}<extra></extra>"),
            texttemplate="%{label}<br>%{percentRoot:.1%}",
            textfont={"color": inks},
            pathbar={"visible": True, "textfont": {"color": INKS[theme]}},
            tiling={"pad": 2},
        )
    )
    return figure.update_layout(
        height=420,
        margin={"l": 4, "r": 4, "t": 28, "b": 4},
        uniformtext={"minsize": 9, "mode": "hide"},  # smaller words could not be read
    )


def _colour(path: str) -> str | None:
    return next((colour for name, colour in _KINDS if name in path), None)


_TIMES = {"before": N_("before training"), "after": N_("after training")}


def histograms(
    weights: Mapping[str, tuple[Floats, Floats]], title: str, bins: int = 61
) -> go.Figure:
    """Draw the distribution of one module's weights.

    weights: name ("before", "after") -> (edges (bins + 1,), share of the weights in each (bins,)).
    """
    looks = {"before": (GREY, "dot"), "after": (COLOURS["train"], "solid")}
    colours = [looks.get(name, (GREY, "solid")) for name in weights]
    return chart(
        {
            _TIMES.get(name, name): (_middles(edges), shares)
            for name, (edges, shares) in weights.items()
        },
        "lines",
        looks=[{"line": _steps(*look), "fill": "tozeroy"} for look in colours],
        hover=lambda name: N_("%{{x:.4f}}: %{{y:.2%}}<extra>{name}</extra>", name=name),
        height=320,
        x={"title": N_("weight of {title}", title=title)},
        y={"title": N_("share of weights"), "tickformat": ".1%", "rangemode": "tozero"},
    )


def _middles(edges: Floats) -> Floats:
    return (edges[1:] + edges[:-1]) / 2


def _steps(colour: str, dash: str) -> dict[str, Any]:
    """Return the line of a distribution: steps from edge to edge."""
    return {"color": colour, "dash": dash, "shape": "hvh", "width": 2}


_X_TITLE = N_("u, a hidden value before it")


def lines(curves: Mapping[str, tuple[str, Floats, Floats]], chosen: str, y_title: str) -> go.Figure:
    """Draw functions of u: activation -> label, u (n,), values (n,); the chosen one is thick."""
    looks = []
    for name in curves:
        colour = HUES[ACTIVATIONS[name].colour]
        line = {"color": colour, "dash": ACTIVATIONS[name].dash, "width": 1.5}
        looks.append({"line": line | ({"dash": "solid", "width": 5} if name == chosen else {})})
    figure = chart(
        {label: (u, values) for label, u, values in curves.values()},
        "lines",
        looks=looks,
        hover=lambda label: "u = %{x:.2f}: %{y:.3f}<extra>" + label + "</extra>",
        height=320,
        x={"title": _X_TITLE},
        y={"title": y_title},
    )
    reference_line(figure, x=0)
    return figure


def histogram(layers: Mapping[str, Floats], edges: Floats) -> go.Figure:
    """Draw where the numbers lie: layer -> share in each bin; edges (bins + 1,)."""
    colours, dashes = (BLUE, ORANGE, GREEN, PURPLE, GREY), DASHES[:4]
    figure = chart(
        wide(_middles(edges), layers),
        "lines",
        looks=[
            {"line": _steps(colours[i % len(colours)], dashes[i % len(dashes)])}
            for i in range(len(layers))
        ],
        hover=lambda name: "u = %{x:.2f}: %{y:.2%}<extra>" + name + "</extra>",
        height=300,
        x={"title": _X_TITLE},
        y={"title": N_("share of values"), "tickformat": ".1%", "rangemode": "tozero"},
        showlegend=True,
    )
    reference_line(figure, x=0)
    return figure
