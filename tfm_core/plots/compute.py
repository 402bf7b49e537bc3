"""What a model costs, drawn: arithmetic and memory by part, and how they grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out
from tfm_core.plots.palette import COLOURS, GREY, OCHRE

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


def bars(values: Mapping[str, float], x_title: str) -> go.Figure:
    """Draw each part as a bar with its value."""
    names = [name for name, value in values.items() if value][::-1]
    figure = go.Figure(
        go.Bar(
            x=[values[name] for name in names],
            y=names,
            orientation="h",
            marker={"color": [PART_COLOURS.get(name, GREY) for name in names]},
            text=[f"{values[name]:.3g}" for name in names],
            textposition="auto",
            textangle=0,  # beside a bar too short for it, never on its side
            hovertemplate="%{y}: %{x:,.4g}<extra></extra>",
        )
    )
    return lay_out(figure, height=60 + 38 * max(3, len(names)), x={"title": x_title}, y={})


def _told_apart(
    parts: Mapping[str, Sequence[float]],
) -> list[tuple[list[str], Sequence[float]]]:
    """Return each line once, with the names of all the parts that lie on it."""
    lines: list[tuple[list[str], Sequence[float]]] = []
    for name, values in parts.items():
        same = next((names for names, others in lines if np.allclose(values, others)), None)
        if same is None:
            lines.append(([name], values))
        else:
            same.append(name)
    return lines


def growth(
    xs: Sequence[float], parts: Mapping[str, Sequence[float]], x_title: str, y_title: str
) -> go.Figure:
    """Draw how each part grows along one quantity; both axes are linear, so a square bends."""
    figure = go.Figure()
    shown = {name: values for name, values in parts.items() if any(values)}
    for i, (names, values) in enumerate(_told_apart(shown)):
        name = " = ".join(names)
        figure.add_scatter(
            x=np.asarray(xs, np.float32),
            y=np.asarray(values, np.float32),
            name=name,
            mode="lines+markers",
            line={
                "color": PART_COLOURS.get(names[-1], GREY),
                "dash": _DASHES[i % len(_DASHES)],
                "width": 3 if "scores" in names else 2,
            },
            hovertemplate="%{x:,}: %{y:,.4g}<extra>" + name + "</extra>",
        )
    return lay_out(
        figure,
        height=340,
        x={"title": x_title, "rangemode": "tozero"},
        y={"title": y_title, "rangemode": "tozero"},
    )
