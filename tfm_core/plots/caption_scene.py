"""A composed picture of digits, each in its square; squares that overlap are marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import SKY, VERMILION
from tfm_core.plots.patches import picture_trace

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
