"""What a patch of a picture, or a word of its caption, looks at, drawn over it.

The patches follow Dosovitskiy et al. 2021, figure 6, the strip of words Xu et al. 2015, figure 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.chart import cells, texts_of
from tfm_core.plots.heads.attention import top_of
from tfm_core.plots.kinds import HOLES, frame, layout_of, picture_axes, picture_trace
from tfm_core.plots.palette import SKY, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Sentence

INK = "230, 159, 0"
"""Attention over a picture: red, green, blue."""
OVERLAY = ((0.0, f"rgba({INK}, 0)"), (1.0, f"rgba({INK}, 0.75)"))
COLUMNS = 4
_SIDE, _WORD, _NOTE, _MARGIN = 150, 28, 18, 8  # pixels


def patch_overlay(
    weights: Floats,
    picture: npt.NDArray[np.uint8],
    *,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draw attention over patches onto the picture they were cut from.

    weights: (side, side). picture: uint8 (C, height, width) or (height, width).
    chosen: row and column, from 0, of the patch that asks; it gets an outline.
    """
    figure = cells(
        weights,
        OVERLAY,
        (0, top_of(np.asarray(weights, np.float32))),
        picture=picture,
        says=_says(weights),
        legend=N_("weight"),
        height=380,
        top=48,
        plot_bgcolor=HOLES,
    )
    if chosen is not None:
        size = picture.shape[-1] / len(weights)
        left, upper = chosen[1] * size - 0.5, chosen[0] * size - 0.5
        ends = (left, upper, left + size, upper + size)
        figure.add_shape(frame(*ends, colour=VERMILION, width=3))
    return figure


def caption_strip(
    maps: Floats,
    picture: npt.NDArray[np.uint8],
    words: Sequence[str],
    boxes: Sequence[Sequence[int] | None],
    *,
    notes: Sequence[str] = (),
) -> go.Figure:
    """Draw a picture for each word, with the attention over its patches.

    maps: (T, side, side). picture: uint8 (C, height, width). boxes: left, top, right, bottom in
    pixels of what a word names, or None; outlined. notes: a few letters for each word, under it.
    """
    rows = max(1, -(-len(words) // COLUMNS))
    below = _WORD + _NOTE * bool(notes)
    height = rows * _SIDE + (rows - 1) * below
    shown = [f"<b>{escape(word)}</b>" for word in words]
    for n, note in enumerate(notes):
        shown[n] += f"<br>{escape(note)}"
    figure = cells(
        maps,
        OVERLAY,
        (0, float(np.max(maps)) or 1.0),
        picture=picture,
        each_says=[_says(one, escape(word)) for one, word in zip(maps, words, strict=True)],
        facets=shown,
        n_beside=COLUMNS,
        gaps=(0.03, below / height),
        height=height + below + _MARGIN,
    )
    for n, box in enumerate(boxes):
        if box is not None:
            outline = frame(*(float(edge) - 0.5 for edge in box), colour=SKY, width=2)
            axis = str(n + 1) if n else ""
            figure.add_shape(outline, xref=f"x{axis}", yref=f"y{axis}")
    return figure


def _says(weights: Floats, word: str = "") -> list[list[Sentence]]:
    """Return what the pointer reads of each patch, and whose weight it is."""
    numbers = range(1, len(weights) + 1)
    template = N_("patch {row},{column}: weight {w:.4f}")
    if word:
        template = N_("{word}<br>patch {row},{column}: weight {w:.4f}")
    places: dict[str, Any] = {"rows": {"row": numbers}, "columns": {"column": numbers}}
    return texts_of(template, **places, w=weights, word=word)


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
    shown = {**picture_trace(picture), "hoverinfo": None, "hovertemplate": "%{z}<extra></extra>"}
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
