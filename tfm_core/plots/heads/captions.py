"""Captions: a composed picture of digits, and a strip that says where each word looked.

The strip follows "Show, Attend and Tell" (Xu et al. 2015), figure 2.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.heads.attention import Floats, Theme
from tfm_core.plots.heads.patches import OVERLAY, picture_trace
from tfm_core.plots.palette import INKS, SKY, VERMILION
from tfm_core.sentences import N_

COLUMNS = 4
_SIDE = 150  # pixels of a picture, where there is room
_WORD, _NOTED = 0.76, 0.64  # a picture's share of its row: above a word, above a word and its note
_GAP = 0.03  # between two columns, as a share of the figure


def caption_strip(
    maps: Floats,
    picture: npt.NDArray[np.uint8],
    words: Sequence[str],
    boxes: Sequence[Sequence[int] | None],
    theme: Theme = "light",
    *,
    notes: Sequence[str] = (),
    top: float | None = None,
) -> go.Figure:
    """Draw a picture for each word, with the attention over its patches.

    maps: (T, side, side). picture: uint8 (C, height, width). boxes: left, top, right, bottom in
    pixels of what a word names, or None; outlined. notes: a few letters for each word, under it.
    top: the weight with the most colour; None takes the largest of all words.
    """
    maps = np.asarray(maps, np.float32)
    rows = max(1, math.ceil(len(words) / COLUMNS))
    size, share = picture.shape[-1], _NOTED if notes else _WORD
    highest = float(maps.max()) if top is None else top
    figure = go.Figure()
    for index, word in enumerate(words):
        axis = "" if index == 0 else str(index + 1)
        veil = _veil(maps[index], size / maps.shape[-1], highest, word)
        for trace in (picture_trace(picture), veil):
            figure.add_trace(trace.update(xaxis=f"x{axis}", yaxis=f"y{axis}"))
        figure.update_layout(_axes(axis, index, rows, size, share))
        note = f"<br>{escape(notes[index])}" if index < len(notes) else ""
        figure.add_annotation(
            x=0.5,
            y=0,
            xref=f"x{axis} domain",
            yref=f"y{axis} domain",
            yanchor="top",
            text=f"<b>{escape(word)}</b>{note}",
            showarrow=False,
            font={"size": 13, "color": INKS[theme]},
        )
        box = boxes[index]
        if box is not None:
            figure.add_shape(_outline(box, axis))
    return figure.update_layout(
        height=round(rows * _SIDE / share) + 8,
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        showlegend=False,
        dragmode=False,
        hovermode="closest",
    )


def _axes(axis: str, index: int, rows: int, size: int, share: float) -> dict[str, Any]:
    """Return the hidden axes of a picture, at its index in the strip."""
    row, column = divmod(index, COLUMNS)
    left, upper = column / COLUMNS, 1 - row / rows
    ends = (-0.5, size - 0.5)
    across = {"domain": [left, left + 1 / COLUMNS - _GAP], "range": ends, "anchor": f"y{axis}"}
    down = {
        "domain": [upper - share / rows, upper],
        "range": ends[::-1],
        "anchor": f"x{axis}",
        "scaleanchor": f"x{axis}",
        "constraintoward": "top",
    }
    hidden = {"visible": False, "constrain": "domain"}
    return {f"xaxis{axis}": hidden | across, f"yaxis{axis}": hidden | down}


def _outline(box: Sequence[int], axis: str) -> dict[str, Any]:
    left, upper, right, lower = (float(edge) - 0.5 for edge in box)
    return {
        "type": "rect",
        "xref": f"x{axis}",
        "yref": f"y{axis}",
        "x0": left,
        "y0": upper,
        "x1": right,
        "y1": lower,
        "line": {"color": SKY, "width": 2},
    }


def _veil(weights: Floats, size: float, top: float, word: str) -> go.Heatmap:
    centres = (np.arange(len(weights)) + 0.5) * size - 0.5
    return go.Heatmap(
        z=weights,
        x=centres,
        y=centres,
        zmin=0,
        zmax=top or 1.0,
        colorscale=[list(stop) for stop in OVERLAY],
        showscale=False,
        xgap=1,
        ygap=1,
        customdata=[
            [f"{row + 1},{column + 1}" for column in range(len(weights))]
            for row in range(len(weights))
        ],
        hovertemplate=N_(
            "{label}<br>patch %{{customdata}}: weight %{{z:.4f}}<extra></extra>", label=escape(word)
        ),
    )


_HEIGHT = 320


def caption_scene(
    picture: npt.NDArray[np.uint8],
    squares: Sequence[tuple[int, int, int, int]],
    overlapping: Collection[int] = (),
) -> go.Figure:
    """Draw a picture with the squares of its digits, numbered from 1.

    picture: uint8 (C, height, width). squares: left, top, right, bottom in pixels, the last two
    behind the square. overlapping: squares, from 0, drawn in red with thicker lines.
    """
    figure = go.Figure(picture_trace(picture))
    for i, square in enumerate(squares):
        is_bad = i in overlapping
        left, top, right, bottom = (float(edge) - 0.5 for edge in square)
        colour = VERMILION if is_bad else SKY
        figure.add_shape(
            type="rect", x0=left, x1=right, y0=top, y1=bottom,
            line={"color": colour, "width": 4 if is_bad else 2},
        )  # fmt: skip
        figure.add_annotation(
            x=left, y=top, xanchor="left", yanchor="top", text=f"<b>{i + 1}</b>", showarrow=False,
            font={"size": 14, "color": colour},
        )  # fmt: skip
    ends = (-0.5, picture.shape[-1] - 0.5)
    hidden = {"visible": False, "constrain": "domain"}
    return figure.update_layout(
        xaxis={**hidden, "range": ends},
        yaxis={**hidden, "range": ends[::-1], "scaleanchor": "x"},
        height=_HEIGHT,
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        showlegend=False,
        dragmode=False,
    )
