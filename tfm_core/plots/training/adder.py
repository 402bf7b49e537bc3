"""A small adder: its carry by what the column before came to, and its weights as maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.chart import chart
from tfm_core.plots.kinds import reference_line
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.palette import BLUE, VERMILION, ThemeName
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

_MAX_DOTS = 60  # of each total
_ROW, _AROUND = 26, 84  # pixels


def carry(table: pd.DataFrame, *, height: int) -> go.Figure:
    """Draw how much of the carry each column has, by what the column before came to.

    table: of ``carry_of``: read, about 0 without and 1 with a carry; before, 0 to 3.
    """
    series = {}
    for name, totals in ((N_("no carry"), (0, 1)), (N_("carry"), (2, 3))):
        dots = [table["read"].to_numpy()[table["before"] == total][:_MAX_DOTS] for total in totals]
        spread = [
            total + np.linspace(-0.3, 0.3, len(y)) for total, y in zip(totals, dots, strict=True)
        ]
        series[name] = (np.concatenate(spread), np.concatenate(dots))
    figure = chart(
        series,
        "markers",
        looks=[{"marker": {"color": colour, "size": 5}} for colour in (BLUE, VERMILION)],
        hover="%{y:.2f}<extra></extra>",
        height=height,
        top=30,
        x={"title": N_("the column before comes to"), "tickvals": [0, 1, 2, 3], "showgrid": False},
        y={"title": N_("read by the probe")},
    )
    reference_line(figure, y=0.5, words=N_("threshold"))
    return figure


def small_map(
    values: Floats, rows: Sequence[str], columns: Sequence[str], theme: ThemeName
) -> go.Figure:
    """Draw a few numbers (rows, columns) as a map that carries them, without a scale."""
    figure = tensor_map(values, rows, columns, row_title="", column_title="", theme=theme)
    figure.update_traces(showscale=False)
    return figure.update_layout(
        height=_AROUND + _ROW * len(rows), margin={"l": 4, "r": 4, "t": 4, "b": 4}
    )
