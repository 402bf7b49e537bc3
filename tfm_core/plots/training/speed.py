"""What makes training fast: times side by side with their spread, curves over sizes, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.chart import chart
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.sentences import N_

COLOURS = (GREY, BLUE, VERMILION, GREEN, PURPLE)  # by the order of the sides, the plain way first


def times(table: pd.DataFrame, clock: str, numbers: Sequence[int]) -> go.Figure:
    """Draw milliseconds a call as bars; whiskers reach over all rounds.

    table: side, its label; median, low, high; gain, how many times as fast as the first side.
    numbers: the places of the sides among all of their comparison, which decide their colours.
    """
    axis = {"range": [0, 1.75 * table["high"].max()], "nticks": 5}
    figure = chart(
        table.assign(side=table["side"].map(_broken)),
        "bars",
        x="median",
        ends=("low", "high"),
        hover=("low", "high"),
        labels={"median": N_("milliseconds per call ({clock})", clock=clock)},
        across=axis,
        **_look(numbers),
    )
    for number, row in enumerate(table.itertuples()):
        gain = f" · <b>{row.gain:.2f}x</b>" if number else ""
        place = {"x": row.high, "y": _broken(row.side), "xanchor": "left", "xshift": 8}
        figure.add_annotation(text=f"{row.median:.3g} ms{gain}", showarrow=False, **place)
    return figure


def counted(table: pd.DataFrame, numbers: Sequence[int]) -> go.Figure:
    """Draw what the forward pass keeps for the backward pass. table: side, size (MiB), bytes."""
    words = [f"{size:.3g} MiB" for size in table["size"]]
    return chart(
        table.assign(side=table["side"].map(_broken), words=words),
        "bars",
        x="size",
        text="words",
        hover=["bytes"],
        across={"nticks": 5},
        **_look(numbers),
    )


def curve(
    table: pd.DataFrame,
    x_title: str,
    y_title: str,
    columns: tuple[str, str, str] = ("median", "low", "high"),
) -> go.Figure:
    """Draw spreads over x, both axes logarithmic; columns: the middle, and what whiskers reach."""
    middle, low, high = columns
    x = table["x"].to_list()
    texts = [f"{value:,.0f}" for value in x]
    return chart(
        table,
        x="x",
        y=middle,
        ends=(low, high),
        looks=[{"colour": BLUE, "size": 8}],
        across={"title": x_title, "type": "log", "tickvals": x, "ticktext": texts},
        up={"title": y_title, "type": "log", "tickformat": "~g", "dtick": 1},
    )


def _look(numbers: Sequence[int]) -> dict[str, Any]:
    colours = [COLOURS[i] for i in numbers]
    return {"y": "side", "orientation": "h", "looks": [{"colour": colours}]}


def _broken(label: str) -> str:
    """Break a label in two lines, so that it leaves room for the bars on a narrow screen."""
    words, lines = label.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 16 and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(escape(line, quote=False) for line in lines)
