"""Features in a plane, at many sparsities, over a training; and what each feature answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.chart import chart, wide
from tfm_core.plots.kinds import error_bars, lay_out
from tfm_core.plots.palette import BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, VERMILION
from tfm_core.plots.playing import controls
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, whole_percent

_FEATURES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
_COLUMNS, _ROOM = 5, 3.0  # plots in a row, and the width of each; a vector is about 1 long
_TITLE = 1.55  # above the middle of a plot
_PLAY_MS = 250


def planes(
    steps: npt.NDArray[np.int64], vectors: Floats, sparsities: Floats, *, height: int
) -> go.Figure:
    """Draw the vectors (T, S, F, 2) of all features, a plot for each sparsity.

    Several snapshots become a film, of which the last one is shown first.
    """
    n = len(sparsities)
    middles = _ROOM * np.array([[k % _COLUMNS, -(k // _COLUMNS)] for k in range(n)])
    lengths = np.linalg.norm(vectors, axis=-1)

    def feature(at: int, number: int) -> go.Scatter:
        tips = middles + vectors[at, :, number]
        points = np.full((n, 3, 2), np.nan)  # the middle, the tip, a gap
        points[:, 0], points[:, 1] = middles, tips
        x, y = np.round(points.reshape(-1, 2), 3).T
        colour = _FEATURES[number]
        hover = [
            text
            for k in range(n)
            for text in ("", f"{lengths[at, k, number]:.2f}", "")  # only the tip has one
        ]
        return go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"color": colour, "size": [0, 7, 0] * n, "opacity": 1},
            customdata=hover,
            hovertemplate=N_(
                "feature {n}: length {length}",
                n=number + 1,
                length="%{customdata}<extra></extra>",
            ),
            name=N_("feature {n}", n=number + 1),
        )

    features = range(vectors.shape[2])
    figure = go.Figure([feature(-1, number) for number in features])
    for middle, sparsity in zip(middles, sparsities, strict=True):
        x, y = middle
        figure.add_shape(
            type="circle",
            x0=x - 1,
            x1=x + 1,
            y0=y - 1,
            y1=y + 1,
            line={"color": GREY, "width": 1, "dash": "dot"},
            layer="below",
        )
        words = whole_percent(float(sparsity))
        figure.add_annotation(
            x=x, y=y + _TITLE, text=words, showarrow=False, font={"size": 12, "color": GREY}
        )
    rows = -(-n // _COLUMNS)
    ends_x = [-_ROOM / 2, _ROOM * (_COLUMNS - 0.5)]
    ends_y = [-_ROOM * (rows - 0.5), _ROOM / 2 + 0.4]
    bare = {"visible": False, "constrain": "domain"}
    lay_out(
        figure,
        height=height,
        x={"range": ends_x, **bare},
        y={"range": ends_y, "scaleanchor": "x", **bare},
        top=36,
        showlegend=False,
    )
    if len(steps) > 1:
        names = [f"{step:,}" for step in steps]
        figure.frames = [
            go.Frame(name=name, data=[feature(at, number) for number in features])
            for at, name in enumerate(names)
        ]
        figure.update_layout(controls(names, duration=_PLAY_MS))
    return figure


def shares(
    sparsities: Floats,
    references: Mapping[str, Floats],
    seeds: Floats,
    name: str,
    *,
    height: int,
) -> go.Figure:
    """Draw the share of the loss at each sparsity. seeds: (seeds, S); name: of their mean.

    references: label -> (S,), what they are compared with.
    """
    columns = dict(references)
    looks: list[dict[str, Any]] = [
        {"line": {"color": COLOURS["floor"], "dash": dash, "width": 2}} for dash in ("dot", "solid")
    ]
    if len(seeds):
        columns[name] = mean = seeds.mean(0)
        bars = error_bars(seeds.max(0) - mean, mean - seeds.min(0), thickness=1.5, width=4)
        spread = {"error_y": bars} if len(seeds) > 1 else {}
        looks.append({"mode": "markers", "marker": {"color": BLUE, "size": 9}, **spread})
    return chart(
        wide([whole_percent(float(one)) for one in sparsities], columns),
        "lines",
        looks=looks,
        height=height,
        top=30,
        x={"title": N_("sparsity: share of time that a feature is absent"), "type": "category"},
        y={"title": N_("loss, of keeping nothing"), "tickformat": ".0%", "rangemode": "tozero"},
    )


def answers(given: Floats, answered: Floats, *, height: int) -> go.Figure:
    """Draw features as they were given (F,) and as a model answers."""
    return chart(
        wide([str(n + 1) for n in range(len(given))], {N_("given"): given, N_("answer"): answered}),
        "bars",
        looks=[{"marker": {"color": GREY}}, {"marker": {"color": BLUE}}],
        height=height,
        top=30,
        x={"title": N_("feature"), "type": "category"},
        y={"range": [0, 1.25]},
        barmode="group",
    )
