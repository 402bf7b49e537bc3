"""How a model fares while parts are taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from pandas import DataFrame

from tfm_core.plots.chart import cells, chart, wide
from tfm_core.plots.heads.attention import LEGEND, MASKED, Theme, short
from tfm_core.plots.kinds import band, bars, lay_out, ticks
from tfm_core.plots.model.walk import AROUND_ZERO
from tfm_core.plots.palette import BLUE, GREY, VERMILION
from tfm_core.sentences import N_

_MAX_TICKS = 32
_MAX_WRITTEN = 16  # columns whose cells carry their number


def pruning_curve(curves: DataFrame, measure: str = "accuracy") -> go.Figure:
    """Draw the ordered curve, and random orders as their mean and range.

    curves: the table of ``pruned``. measure: "accuracy", as a share, or "loss", in nats.
    """
    is_share = measure == "accuracy"
    form = ".1%" if is_share else ".3f"
    by_order = curves.pivot(index="order", columns="removed", values=measure)
    ordered, *random = by_order.to_numpy()
    chance, removed = np.array(random), by_order.columns.tolist()
    figure = go.Figure()
    if len(chance):
        name = N_("range of {n} random orders", n=len(chance))
        figure.add_traces(band(removed, chance.min(0), chance.max(0), GREY, name=name))
        figure.add_trace(_line(removed, chance.mean(0), N_("random order, mean"), "dash", form))
    figure.add_trace(_line(removed, ordered, N_("least important first"), "solid", form))
    return lay_out(
        figure,
        height=330,
        x={"title": N_("heads removed"), "range": [-0.3, removed[-1] + 0.3]},
        y={"title": N_("accuracy"), "range": [-0.02, 1.04], "tickformat": ".0%"}
        if is_share
        else {"title": N_("loss (nats)"), "rangemode": "tozero"},
        legend={"font": {"size": 12}},
    )


def restored_map(
    shares: npt.NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    column_title: str,
    theme: Theme = "light",
) -> go.Figure:
    """Draw what each patch restores, (rows, columns): 0 for nothing, 1 for the whole answer."""
    top = max(1.0, float(np.abs(shares).max(initial=0.0)))
    names = [short(name) for name in columns]
    every = -(-len(names) // _MAX_TICKS)
    x = {**ticks(names[::every]), "tickvals": list(range(0, len(names), every)), "tickangle": -45}
    return cells(
        shares,
        AROUND_ZERO[theme],
        (-top, top),
        height=140 + 26 * len(rows),
        top=44,
        x={"title": column_title, **x},
        y={"autorange": "reversed", **ticks(rows), "tickfont": {"size": 11}},
        plot_bgcolor=MASKED[theme],
        trace={
            "showscale": None,
            "colorbar": {**LEGEND, "title": {"text": ""}, "tickvals": [-1, 0, 1]},
            "texttemplate": "%{z:.2f}" if len(names) <= _MAX_WRITTEN else None,
            "textfont": {"size": 10},
            "hovertext": [[f"{row}, {column}" for column in names] for row in rows],
            "hovertemplate": "%{hovertext}: %{z:.5f}<extra></extra>",
        },
    )


def lens_lines(lens: npt.NDArray[np.float64], answers: tuple[str, str]) -> go.Figure:
    """Draw the probability of two answers after each layer: lens is (L + 1, 2)."""
    names = ticks([N_("embedding"), *(N_("layer {n}", n=n) for n in range(1, len(lens)))])
    return chart(
        wide(range(len(lens)), dict(zip(map(short, answers), lens.T, strict=True))),
        looks=[
            {"line": {"color": colour, "width": 2.5, "dash": dash}}
            for colour, dash in ((BLUE, "solid"), (VERMILION, "dash"))
        ],
        hover="%{fullData.name}: %{y:.5f}<extra></extra>",
        height=260,
        x={"title": N_("answer after"), **names},
        y={"title": N_("probability"), "range": [-0.02, 1.04], "tickformat": ".0%"},
    )


def direct_effects(parts: Sequence[tuple[str, float]]) -> go.Figure:
    """Draw what each part adds to the difference of two logits as a bar, the strongest on top."""
    names, values = [name for name, _ in parts], [value for _, value in parts]
    low, high = min(0.0, *values), max(0.0, *values)
    room = 0.3 * (high - low)  # for the numbers
    figure = go.Figure(
        bars(
            range(len(parts)),
            values,
            [BLUE if value >= 0 else VERMILION for value in values],
            texts=[f"{value:+.2f}" for value in values],
            hovertemplate="%{customdata}: %{x:+.5f}<extra></extra>",
            customdata=names,
        )
    )
    return lay_out(
        figure,
        height=90 + 26 * len(parts),
        x={
            "title": N_("difference of the logits"),
            "range": [low - room * (low < 0), high + room],
        },
        y={**ticks(names), "autorange": "reversed"},
    )


def _line(
    x: list[int], y: npt.NDArray[np.float64], name: str, dash: Literal["solid", "dash"], form: str
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
            "%{{x}} heads removed: %{{y:{form}}}<extra>{name}</extra>", form=form, name=name
        ),
    )
