"""Embedding tables as figures: lookup and likeness. Their words move in ``embeddings_moving``."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.text.embeddings import Lookup
from tfm_core.plots.attention import Floats, Theme, short
from tfm_core.plots.kinds import lay_out
from tfm_core.plots.masks import DIVERGING
from tfm_core.plots.positions import matrix
from tfm_core.sentences import N_

_DIMENSIONS_SHOWN = 8


def likeness(
    like: Floats, tokens: Sequence[str], order: Sequence[int], theme: Theme = "light"
) -> go.Figure:
    """Draw the cosines (V, V) of all words with all, in an order."""
    names = [escape(tokens[index], quote=False) for index in order]
    figure = matrix(
        like[np.ix_(order, order)], "word", "word", theme, names=names, is_square=True, limit=1.0
    )
    figure.data[0].hovertemplate = None
    figure.data[0].hovertext = [
        [f"{a} and {b}<br>cosine {value:.4f}" for b, value in zip(names, row, strict=True)]
        for a, row in zip(names, like[np.ix_(order, order)].tolist(), strict=True)
    ]
    figure.data[0].hoverinfo = "text"
    figure.data[0].colorbar.title = {"text": N_("cosine  "), "font": {"size": 12}}
    every = -(-len(names) // 40)
    shown = list(range(0, len(names), every))
    ticks = {"tickvals": shown, "ticktext": [short(tokens[order[i]]) for i in shown]}
    figure.update_xaxes(**ticks, tickangle=-90, tickfont={"size": 9})
    figure.update_yaxes(**ticks, tickfont={"size": 9})
    return figure.update_layout(height=500)


def lookup(table: Floats, looked_up: Lookup, tokens: Sequence[str], theme: Theme) -> go.Figure:
    """Draw a window of the table (V, D) around the row that is looked up, the one-hot beside it.

    The first column is the one-hot vector, the others are the first dimensions of the table.
    """
    first = max(0, min(looked_up.id - 3, len(table) - 7))
    rows = range(first, min(len(table), first + 7))
    shown = table[rows.start : rows.stop, :_DIMENSIONS_SHOWN]
    one_hot = np.array([[float(row == looked_up.id)] for row in rows])
    top = float(np.abs(shown).max())
    values = np.concatenate([one_hot * top, np.full((len(rows), 1), np.nan), shown], 1)
    texts = [
        [f"{hot[0]:.0f}", "", *(f"{v:z.2f}" for v in row)]
        for hot, row in zip(one_hot, shown, strict=True)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=values.astype(np.float32),
            zmin=-top,
            zmax=top,
            colorscale=list(DIVERGING[theme]),
            showscale=False,
            text=texts,
            texttemplate="%{text}",
            textfont={"size": 10},
            xgap=1,
            ygap=1,
            hovertemplate="%{y}<br>%{x}: %{text}<extra></extra>",
        )
    )
    names = ["one-hot", "", *(str(n + 1) for n in range(shown.shape[1]))]
    return lay_out(
        figure,
        height=300,
        x={
            "title": N_(
                "one-hot, and dimensions 1 to {shape} of {shape_2}",
                shape=shown.shape[1],
                shape_2=table.shape[1],
            ),
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "showgrid": False,
            "zeroline": False,
        },
        y={
            "title": N_("row of the table: its word"),
            "tickvals": list(range(len(rows))),
            "ticktext": [f"{row}: {short(tokens[row])}" for row in rows],
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
    )
