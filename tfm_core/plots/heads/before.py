"""Additive, scaled dot-product and multi-head attention against each other."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import pandas as pd
import plotly.graph_objects as go

from tfm_core.choices.variants.positions import Style
from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import chart
from tfm_core.plots.kinds import reference_line
from tfm_core.plots.model.positions import looks_of
from tfm_core.probe.types import Floats

TIMES = Columns(length=Column(form=","), value=Column(form=".2f"))
STYLES = {  # one style for each model, in every figure
    "additive": Style("vermilion", "dash", "square"),
    "one-head": Style("blue", "solid", "circle"),
    "many-heads": Style("green", "dashdot", "diamond"),
}


def times(
    series: Mapping[str, tuple[str, Floats, Floats]],
    x_title: str,
    y_title: str,
    *,
    is_ratio: bool = False,
) -> go.Figure:
    """Draw milliseconds (n,) over lengths (n,), both axes logarithmic: a power is a line.

    series: model -> label, lengths and values. is_ratio: how many times as long a model takes as
    another instead, from 0; at 1 they are even.
    """
    lengths = sorted({float(n) for _, x, _ in series.values() for n in x})
    texts = [f"{n:.0f}" for n in lengths]
    y = {"rangemode": "tozero"} if is_ratio else {"type": "log", "dtick": "D2", "tickformat": "~g"}
    parts = [
        pd.DataFrame({"length": x, "value": values, "model": escape(label, quote=False)})
        for label, x, values in series.values()
    ]
    figure = chart(
        TIMES.table(pd.concat(parts)),
        x="length",
        y="value",
        colour="model",
        looks=[looks_of(STYLES[name]) for name in series],
        across={"title": x_title, "type": "log", "tickvals": lengths, "ticktext": texts},
        up={"title": y_title, **y},
    )
    if is_ratio:
        reference_line(figure, y=1)
    return figure
