"""What heads do: shares by role, and heads by layer (figure 7, right, of the ViT paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.attention.head_roles import ROLES
from tfm_core.inspect.attention.head_statistics import HeadStatistics
from tfm_core.plots.palette import BLUE, COLOURS, GREY, VERMILION

MEASURES: dict[str, str] = {  # column of the table -> title of the axis
    "distance": "mean attention distance",
    "entropy": "entropy (nats)",
    "evenness": "entropy, share of the largest",
    "aligned": "share on the truth",
    **{name: f"share on {role.label}" for name, role in ROLES.items()},
}


def role_bars(stats: HeadStatistics, head: int) -> go.Figure:
    """Draw the share of one head's attention on each role; a line marks what even attention gives.

    head: from 0. Roles that no query has are left out.
    """
    roles = [name for name, shares in stats.shares.items() if np.isfinite(shares[head])]
    labels = [ROLES[name].words(stats.kind).replace("<", "&lt;") for name in roles]
    shares = np.asarray([stats.shares[name][head] for name in roles], np.float32)
    chance = np.asarray([stats.chance[name] for name in roles], np.float32)
    figure = go.Figure(
        [
            go.Bar(
                x=shares,
                y=labels,
                orientation="h",
                name="this head",
                marker={"color": BLUE},
                hovertemplate="%{y}: %{x:.1%}<extra>this head</extra>",
            ),
            go.Scatter(
                x=chance,
                y=labels,
                mode="markers",
                name="even attention",
                marker={"symbol": "line-ns", "size": 16, "line": {"color": GREY, "width": 2}},
                hovertemplate="%{y}: %{x:.1%}<extra>even attention</extra>",
            ),
            go.Scatter(  # the figures in a column of their own, where nothing else stands
                x=np.full(len(roles), 1.02, np.float32),
                y=labels,
                mode="text",
                text=[f"{share:.0%}" for share in shares],
                textposition="middle right",
                showlegend=False,
                hoverinfo="skip",
            ),
        ]
    )
    figure.update_layout(
        height=110 + 30 * len(roles), margin={"l": 8, "r": 8, "t": 8, "b": 8}, bargap=0.35
    )
    figure.update_xaxes(
        title={"text": "share of the attention"},
        range=[0, 1.16],
        tickformat=".0%",
        tickvals=[0, 0.25, 0.5, 0.75, 1],
    )
    figure.update_yaxes(autorange="reversed", title=None)
    return figure


def heads_by_layer(
    table: pd.DataFrame,
    measure: str = "distance",
    *,
    unit: str = "tokens",
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draw one dot a head over its layer, and a line through the layers' means.

    table: of ``head_statistics.table``, one kind of attention. measure: a column in MEASURES.
    chosen: layer and head from 0. Each dot's ``customdata`` is [layer from 0, head from 0].
    Raises ValueError for a column that the table does not have.
    """
    if measure not in table.columns:
        raise ValueError(f"The heads were not measured by {measure!r}; try {_columns(table)}.")
    rows = table[np.isfinite(table[measure].to_numpy(float))]
    places = rows[["layer", "head"]].to_numpy(int) - 1
    is_chosen = [chosen is not None and tuple(place) == chosen for place in places.tolist()]
    n_heads = int(places[:, 1].max()) + 1 if len(places) else 1
    spread = (places[:, 1] - (n_heads - 1) / 2) / max(n_heads, 4) * 0.5  # so that no dot hides one
    is_share = measure not in {"distance", "entropy"}
    number = ".1%" if is_share else ".2f"
    words = f" {unit}" if measure == "distance" else " nats" if measure == "entropy" else ""
    means = rows.groupby("layer")[measure].mean()
    figure = go.Figure(
        [
            _means(means),
            go.Scatter(
                x=(places[:, 0] + 1 + spread).astype(np.float32),
                y=rows[measure].to_numpy(np.float32),
                mode="markers",
                name="head",
                marker={
                    "color": [VERMILION if mark else COLOURS["encoder"] for mark in is_chosen],
                    "size": [15 if mark else 10 for mark in is_chosen],
                    "symbol": ["diamond" if mark else "circle" for mark in is_chosen],
                },
                customdata=places,
                hovertext=[
                    f"layer {layer + 1}, head {head + 1}: {label}".replace("<", "&lt;")
                    for (layer, head), label in zip(places.tolist(), rows["label"], strict=True)
                ],
                hovertemplate=f"%{{hovertext}}<br>%{{y:{number}}}{words}<extra></extra>",
            ),
        ]
    )
    title = MEASURES.get(measure, measure).replace("<", "&lt;")
    figure.update_layout(height=340, margin={"l": 8, "r": 8, "t": 8, "b": 8})
    n_layers = int(places[:, 0].max()) + 1 if len(places) else 1
    figure.update_xaxes(title={"text": "layer"}, dtick=1, range=[0.4, n_layers + 0.6])
    figure.update_yaxes(
        title={"text": f"{title} ({unit})" if measure == "distance" else title},
        rangemode="tozero",
        **({"tickformat": ".0%"} if is_share else {}),
    )
    return figure


def _means(means: pd.Series) -> go.Scatter:
    return go.Scatter(
        x=means.index.to_numpy(np.float32),
        y=means.to_numpy(np.float32),
        mode="lines",
        name="mean of the layer",
        line={"color": GREY, "dash": "dot", "width": 1.5},
        hoverinfo="skip",
    )


def _columns(table: pd.DataFrame) -> str:
    known: Sequence[str] = [name for name in MEASURES if name in table.columns]
    return ", ".join(known)
