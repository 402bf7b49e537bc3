"""Similarity of position vectors as tiles: figure 7 (centre) of the ViT paper, from a snapshot."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import LEGEND, Floats, Theme
from tfm_core.plots.difference import DIVERGING
from tfm_core.sentences import N_

_GAP = 1  # empty cells between two tiles


def position_tiles(tiles: Floats, theme: Theme = "light") -> go.Figure:
    """Draw one tile a patch, where the patch lies; its cells are the similarities to all patches.

    tiles: (side, side, side, side), cosine similarities, -1 to 1. One heatmap, so that it is quick.
    """
    mosaic, texts = mosaic_of(tiles)
    side = len(tiles)
    pitch = side + _GAP
    figure = go.Figure(
        go.Heatmap(
            z=mosaic,
            zmin=-1,
            zmax=1,
            colorscale=list(DIVERGING[theme]),
            colorbar={**LEGEND, "title": {**LEGEND["title"], "text": N_("cosine similarity")}},
            **texts,
        )
    )
    centres = [i * pitch + (side - 1) / 2 for i in range(side)]
    axis = {
        "tickmode": "array",
        "tickvals": centres,
        "ticktext": [str(i + 1) for i in range(side)],
        "showgrid": False,
        "zeroline": False,
        "constrain": "domain",
        "automargin": False,
    }
    figure.update_layout(height=460, margin={"l": 52, "r": 8, "t": 48, "b": 52})
    figure.update_xaxes(title={"text": N_("patch column"), "standoff": 26}, **axis)
    figure.update_yaxes(
        title={"text": N_("patch row")}, autorange="reversed", scaleanchor="x", **axis
    )
    return figure


def mosaic_of(tiles: Floats) -> tuple[Floats, dict[str, object]]:
    """Return the tiles in one array with gaps of NaN, and hover texts where they are not too many.

    tiles: (side, side, side, side). Returns ((side * (side + 1) - 1) squared,).
    """
    side = len(tiles)
    pitch = side + _GAP
    size = side * pitch - _GAP
    mosaic = np.full((size, size), np.nan, np.float32)
    texts = np.full((size, size), "", object)
    is_few = side <= 8
    for row in range(side):
        for column in range(side):
            top, left = row * pitch, column * pitch
            mosaic[top : top + side, left : left + side] = tiles[row, column]
            if is_few:
                texts[top : top + side, left : left + side] = _texts(
                    tiles[row, column], row, column
                )
    if not is_few:
        return mosaic, {"hovertemplate": N_("%{z:.2f}<extra></extra>")}
    return mosaic, {"hovertext": texts.tolist(), "hoverinfo": "text"}


def _texts(tile: Floats, row: int, column: int) -> list[list[str]]:
    return [
        [
            f"patch {row + 1},{column + 1} and patch {r + 1},{c + 1}<br>similarity {value:.3f}"
            for c, value in enumerate(values)
        ]
        for r, values in enumerate(tile.tolist())
    ]
