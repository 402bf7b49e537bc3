"""Outlines around cells of a heatmap: what is true, or what is looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go


def outline_cells(
    figure: go.Figure, cells: npt.NDArray[np.bool_], colour: str, width: float = 2
) -> go.Figure:
    """Draw a frame around every marked cell (Q, K) of the figure's map, all as one shape."""
    inset = 0.44
    path = " ".join(
        f"M {k - inset},{q - inset} L {k + inset},{q - inset} L {k + inset},{q + inset} "
        f"L {k - inset},{q + inset} Z"
        for q, k in np.argwhere(cells)
    )
    if path:
        figure.add_shape(
            type="path",
            path=path,
            line={"color": colour, "width": width},
            fillcolor="rgba(0,0,0,0)",
        )
    return figure
