"""What makes training fast: times side by side with their spread, curves over sizes, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.speed.paired import TimeRange
from tfm_core.plots.chart import chart
from tfm_core.plots.kinds import bars, error_bars, lay_out
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
    labels = list(seconds)
    middle = np.array([1000 * one.median for one in seconds.values()], np.float32)
    low = np.array([1000 * one.low for one in seconds.values()], np.float32)
    high = np.array([1000 * one.high for one in seconds.values()], np.float32)
    texts = [
        _amount(value, "ms") + _gain(gains.get(name))
        for name, value in zip(labels, middle, strict=True)
    ]
    figure = go.Figure(
        bars(
            [_broken(label) for label in labels],
            middle,
            [COLOURS[i] for i in numbers or range(len(labels))],
            error_x=error_bars(high - middle, middle - low, thickness=1.5, width=5, color=GREY),
            hovertext=[
                f"{escape(label)}<br><b>{m:.4g} ms</b> ({lo:.4g} to {hi:.4g})"
                for label, m, lo, hi in zip(labels, middle, low, high, strict=True)
            ],
            hoverinfo="text",
        )
    )
    for label, text, end in zip(labels, texts, high, strict=True):
        figure.add_annotation(
            x=float(end), y=_broken(label), text=text, xanchor="left", xshift=8, showarrow=False
        )
    title = N_("milliseconds per call ({clock})", clock=clock)
    return _bars(figure, labels, title, float(high.max()) * 1.75)


def counted(n_bytes: Mapping[str, int], numbers: Sequence[int] | None = None) -> go.Figure:
    """Draw the bytes that the forward pass keeps for the backward pass, in MiB, label -> bytes."""
    labels = list(n_bytes)
    values = np.array([value / 2**20 for value in n_bytes.values()], np.float32)
    figure = go.Figure(
        bars(
            [_broken(label) for label in labels],
            values,
            [COLOURS[i] for i in numbers or range(len(labels))],
            texts=[_amount(value, "MiB") for value in values],
            hovertext=[
                N_("{name}<br><b>{n:,} bytes</b>", name=escape(k), n=v) for k, v in n_bytes.items()
            ],
            hoverinfo="text",
        )
    )
    top = float(values.max(initial=0)) or 1.0
    return _bars(figure, labels, N_("saved for backward (MiB)"), top * 1.4)


def curve(
    x: Sequence[float], spreads: Sequence[TimeRange], x_title: str, y_title: str, unit: str
) -> go.Figure:
    """Draw spreads of y over x, both axes logarithmic; whiskers reach over all rounds."""
    middle, high, low = (
        np.array([getattr(spread, end) for spread in spreads], np.float32)
        for end in ("median", "high", "low")
    )
    texts = [f"{value:,.0f}" for value in x]
    whiskers = error_bars(high - middle, middle - low)
    return chart(
        {None: (x, middle)},
        looks=[{"error_y": whiskers, "line": {"color": BLUE}, "marker": {"size": 8}}],
        hover=N_(
            "{x_title} %{{x:,}}<br><b>%{{y:.4g}} {unit}</b><extra></extra>",
            x_title=escape(x_title),
            unit=unit,
        ),
        top=36,
        right=12,
        x={"title": x_title, "type": "log", "tickvals": list(x), "ticktext": texts},
        y={"title": y_title, "type": "log", "tickformat": "~g", "dtick": 1},
    )


def _bars(figure: go.Figure, labels: Sequence[str], x_title: str, end: float) -> go.Figure:
    x = {"title": x_title, "range": [0, end], "nticks": 5}
    y = {"title": "", "autorange": "reversed"}
    return lay_out(figure, height=84 + 46 * len(labels), x=x, y=y, showlegend=False)


def _gain(gain: TimeRange | None) -> str:
    return "" if gain is None else f" · <b>{gain.median:.2f}x</b>"


def _amount(value: Any, unit: str) -> str:
    return f"{float(value):.3g} {unit}"


def _broken(label: str) -> str:
    """Break a label in two lines, so that it leaves room for the bars on a narrow screen."""
    words, lines = label.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 16 and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(escape(line, quote=False) for line in lines)
