"""What makes training fast: times side by side with their spread, curves over sizes, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.speed.paired import SPREADS, TimeRange
from tfm_core.plots.chart import chart
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.sentences import N_

COLOURS = (GREY, BLUE, VERMILION, GREEN, PURPLE)  # by the order of the sides, the plain way first


def times(
    seconds: Mapping[str, TimeRange],
    gains: Mapping[str, TimeRange],
    clock: str,
    numbers: Sequence[int] | None = None,
) -> go.Figure:
    """Draw milliseconds a call as bars from label -> spread; whiskers reach over all rounds.

    gains: label -> how many times as fast as the first; the first needs none.
    numbers: the places of the sides among all of their comparison, which decide their colours.
    """
    labels, end = list(seconds), max(one.high for one in seconds.values())
    texts = [f"{1000 * one.median:.3g} ms{_gain(gains.get(name))}" for name, one in seconds.items()]
    figure = chart(
        _spreads("side", [_broken(label) for label in labels], list(seconds.values()), 1000),
        "bars",
        x="median",
        y="side",
        orientation="h",
        ends=("low", "high"),
        hover=("low", "high"),
        looks=[{"colour": [COLOURS[i] for i in numbers or range(len(labels))]}],
        labels={"median": N_("milliseconds per call ({clock})", clock=clock)},
        across={"range": [0, 1750 * end], "nticks": 5},
    )
    for (label, one), text in zip(seconds.items(), texts, strict=True):
        place = {"x": 1000 * one.high, "y": _broken(label), "xanchor": "left", "xshift": 8}
        figure.add_annotation(text=text, showarrow=False, **place)
    return figure


def counted(n_bytes: Mapping[str, int], numbers: Sequence[int] | None = None) -> go.Figure:
    """Draw the bytes that the forward pass keeps for the backward pass, in MiB, label -> bytes."""
    sizes = [value / 2**20 for value in n_bytes.values()]
    columns = {
        "side": [_broken(label) for label in n_bytes],
        "size": sizes,
        "bytes": n_bytes.values(),
    }
    return chart(
        SPREADS.table({**columns, "words": [f"{size:.3g} MiB" for size in sizes]}),
        "bars",
        x="size",
        y="side",
        orientation="h",
        text="words",
        hover=["bytes"],
        looks=[{"colour": [COLOURS[i] for i in numbers or range(len(sizes))]}],
        across={"nticks": 5},
    )


def curve(
    x: Sequence[float], spreads: Sequence[TimeRange], x_title: str, y_title: str
) -> go.Figure:
    """Draw spreads of y over x, both axes logarithmic; whiskers reach over all rounds."""
    texts = [f"{value:,.0f}" for value in x]
    return chart(
        _spreads("x", x, spreads),
        x="x",
        y="median",
        ends=("low", "high"),
        looks=[{"colour": BLUE, "size": 8}],
        across={"title": x_title, "type": "log", "tickvals": list(x), "ticktext": texts},
        up={"title": y_title, "type": "log", "tickformat": "~g", "dtick": 1},
    )


def _spreads(
    name: str, places: Sequence[Any], spreads: Sequence[TimeRange], factor: float = 1
) -> pd.DataFrame:
    ends = ("median", "low", "high")
    values = {end: [factor * getattr(one, end) for one in spreads] for end in ends}
    return SPREADS.table({name: places, **values})


def _gain(gain: TimeRange | None) -> str:
    return "" if gain is None else f" · <b>{gain.median:.2f}x</b>"


def _broken(label: str) -> str:
    """Break a label in two lines, so that it leaves room for the bars on a narrow screen."""
    words, lines = label.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 16 and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(escape(line, quote=False) for line in lines)
