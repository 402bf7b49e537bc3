"""What a patch of a picture looks at, drawn over it (Dosovitskiy et al. 2021, figure 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots import described
from tfm_core.plots.chart import texts_of
from tfm_core.plots.heads.attention import Theme, top_of
from tfm_core.plots.kinds import frame, lay_out, layout_of, legend_to, picture_axes
from tfm_core.plots.palette import MASKED, SKY, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

INK = "230, 159, 0"
"""Attention over a picture: red, green, blue."""
OVERLAY = ((0.0, f"rgba({INK}, 0)"), (1.0, f"rgba({INK}, 0.75)"))


def patch_overlay(
    weights: Floats,
    picture: npt.NDArray[np.uint8],
    theme: Theme = "light",
    *,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draw attention over patches onto the picture they were cut from.

    weights: (side, side). picture: uint8 (C, height, width) or (height, width).
    chosen: row and column, from 0, of the patch that asks; it gets an outline.
    The heatmap, whose cells are the patches, comes first; plotly draws it above the picture anyway.
    """
    weights = np.asarray(weights, np.float32)
    side = weights.shape[0]
    size = picture.shape[-1] / side  # pixels to a side of a patch
    end = top_of(weights)
    numbers = range(1, side + 1)
    texts = texts_of(
        N_("patch {row},{column}: weight {w:.4f}"),
        rows={"row": numbers},
        columns={"column": numbers},
        w=weights,
    )
    overlay = veil(
        weights, size, end, colorbar=legend_to(0, end), hoverinfo="text", hovertext=texts
    )
    figure = go.Figure([overlay, picture_trace(picture)])
    if chosen is not None:
        left, upper = chosen[1] * size - 0.5, chosen[0] * size - 0.5
        ends = (left, upper, left + size, upper + size)
        figure.add_shape(frame(*ends, colour=VERMILION, width=3))
    x, y = picture_axes(picture.shape[-1])
    return lay_out(
        figure,
        height=380,
        top=48,
        x=x,
        y=y,
        hovermode="closest",
        dragmode=False,
        plot_bgcolor=MASKED[theme],
    )


def numbered(
    picture: npt.NDArray[np.uint8],
    boxes: Iterable[Sequence[int]],
    *,
    first: int = 0,
    bad: Collection[int] = (),
) -> go.Figure:
    """Draw a picture (C, height, width) with frames that have numbers, where they are few.

    boxes: left, top, right, bottom in pixels, the last two behind the box. first: the first number.
    bad: boxes, from 0, with another colour and thicker lines.
    """
    shapes, notes = [], []
    for n, box in enumerate(boxes):
        left, top, right, bottom = (float(edge) - 0.5 for edge in box)
        colour, width = (VERMILION, 4) if n in bad else (SKY, 2)
        shapes.append(frame(left, top, right, bottom, colour=colour, width=width))
        text = {"text": f"<b>{n + first}</b>", "font": {"size": 11, "color": "#ffffff"}}
        place = {"x": left, "y": top, "xanchor": "left", "yanchor": "top", "showarrow": False}
        notes.append({**text, **place, "bgcolor": colour})
    x, y = picture_axes(picture.shape[-1])
    height, width = picture.shape[-2:]
    shown = picture_trace(picture).update(
        hoverinfo=None,
        hovertemplate="%{z}<extra></extra>",
        meta=N_("{name}: {n} by {m} pixels.", name=N_("Picture"), n=width, m=height),
    )
    layout = layout_of(height=340, x=x, y=y, shapes=shapes)
    return go.Figure(shown, layout | {"annotations": notes if len(notes) <= _MAX_NUMBERED else []})


_MAX_NUMBERED = 64


def patch_weights(weights: Floats, query: int | None, *, has_cls: bool) -> Floats:
    """Return (side, side): what a query pays to each patch.

    weights: (Q, K) of one head. query: its row, or None for the mean of all rows, which is what
    the patches receive. A CLS token in front gets its share too, but stands nowhere in the picture.
    """
    row = weights.astype(np.float32).mean(0) if query is None else weights[query]
    patches = row[1:] if has_cls else row
    side = round(float(np.sqrt(len(patches))))
    return np.asarray(patches, np.float32).reshape(side, side)


def picture_trace(picture: npt.NDArray[np.uint8]) -> go.Image:
    """Return the picture (C, height, width) or (height, width) itself, its pixels as they are."""
    channels = picture[None] if picture.ndim == 2 else picture
    colours = (
        np.broadcast_to(channels, (3, *channels.shape[1:])) if len(channels) == 1 else channels
    )
    return go.Image(z=np.moveaxis(colours, 0, -1).astype(np.uint8), hoverinfo="skip")


def veil(weights: Floats, size: float, top: float, **more: Any) -> go.Heatmap:
    """Return attention (side, side) to lay over a picture. size: pixels to a side of a patch."""
    centres = (np.arange(len(weights)) + 0.5) * size - 0.5
    name = more["colorbar"]["title"]["text"] if "colorbar" in more else N_("Map")
    return go.Heatmap(
        z=weights,
        x=centres,
        y=centres,
        zmin=0,
        zmax=top,
        colorscale=[list(stop) for stop in OVERLAY],
        xgap=1,
        ygap=1,
        meta=described.cells(name, weights, (centres, {}), (centres, {})),
        **more,
    )
