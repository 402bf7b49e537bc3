"""Captions: a composed picture of digits, and a strip that says where each word looked.

The strip follows "Show, Attend and Tell" (Xu et al. 2015), figure 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.heads.patches import picture_trace, veil
from tfm_core.plots.kinds import HIDDEN, frame
from tfm_core.plots.palette import INKS, SKY
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

COLUMNS = 4
_SIDE = 150  # pixels of a picture, where there is room
_WORD, _NOTED = 0.76, 0.64  # a picture's share of its row: above a word, above a word and its note
_GAP = 0.03  # between two columns, as a share of the figure
_BARE: dict[str, Any] = {
    "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
    "showlegend": False,
    "dragmode": False,
}


def caption_strip(
    maps: Floats,
    picture: npt.NDArray[np.uint8],
    words: Sequence[str],
    boxes: Sequence[Sequence[int] | None],
    theme: Theme = "light",
    *,
    notes: Sequence[str] = (),
) -> go.Figure:
    """Draw a picture for each word, with the attention over its patches.

    maps: (T, side, side). picture: uint8 (C, height, width). boxes: left, top, right, bottom in
    pixels of what a word names, or None; outlined. notes: a few letters for each word, under it.
    """
    maps = np.asarray(maps, np.float32)
    rows = max(1, math.ceil(len(words) / COLUMNS))
    size, share = picture.shape[-1], _NOTED if notes else _WORD
    highest = float(maps.max())
    numbers = range(1, maps.shape[-1] + 1)
    places = [[f"{row},{column}" for column in numbers] for row in numbers]
    figure = go.Figure()
    for index, word in enumerate(words):
        axis = "" if index == 0 else str(index + 1)
        label = escape(word)
        overlay = veil(
            maps[index],
            size / maps.shape[-1],
            highest or 1.0,
            showscale=False,
            customdata=places,
            hovertemplate=N_(
                "{label}<br>patch %{{customdata}}: weight %{{z:.4f}}<extra></extra>", label=label
            ),
        )
        for trace in (picture_trace(picture), overlay):
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
            edges = [float(edge) - 0.5 for edge in box]
            outline = frame(*edges, colour=SKY, width=2)
            figure.add_shape(outline, xref=f"x{axis}", yref=f"y{axis}")
    height = round(rows * _SIDE / share) + 8
    return figure.update_layout(height=height, hovermode="closest", **_BARE)


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
    return {f"xaxis{axis}": HIDDEN | across, f"yaxis{axis}": HIDDEN | down}
