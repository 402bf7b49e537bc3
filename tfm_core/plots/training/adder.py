"""A small adder: its carry by what the column before came to, and its weights as maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out, reference_line
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
    figure = go.Figure()
    for has_carry, colour, name in (
        (False, BLUE, N_("no carry")),
        (True, VERMILION, N_("carry")),
    ):
        x: list[float] = []
        y: list[float] = []
        for total in (2, 3) if has_carry else (0, 1):
            dots = table["read"].to_numpy()[table["before"] == total][:_MAX_DOTS]
            x += (total + np.linspace(-0.3, 0.3, len(dots))).tolist()
            y += dots.tolist()
        figure.add_scatter(
            x=x, y=y, mode="markers", name=name, marker={"color": colour, "size": 5},
            hovertemplate="%{y:.2f}<extra></extra>",
        )  # fmt: skip
    reference_line(figure, y=0.5, words=N_("threshold"))
    return lay_out(
        figure,
        height=height,
        top=30,
        x={"title": N_("the column before comes to"), "tickvals": [0, 1, 2, 3], "showgrid": False},
        y={"title": N_("read by the probe")},
    )


def small_map(
    values: Floats, rows: Sequence[str], columns: Sequence[str], theme: ThemeName
) -> go.Figure:
    """Draw a few numbers (rows, columns) as a map that carries them, without a scale."""
    figure = tensor_map(values, rows, columns, row_title="", column_title="", theme=theme)
    figure.update_traces(showscale=False)
    return figure.update_layout(
        height=_AROUND + _ROW * len(rows), margin={"l": 4, "r": 4, "t": 4, "b": 4}
    )
