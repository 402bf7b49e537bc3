"""Attention as figures: one head's map, and what a patch looks at drawn over its picture.

Query runs down, key across, everywhere. Zero is the paper and more ink is more weight, on light and
on dark; what the mask forbids is grey, which no weight is.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import VERMILION, ThemeName

Theme = ThemeName
Floats = npt.NDArray[np.floating[Any]]

# One hue, lightness falling (light theme: ColorBrewer Blues) or rising (dark theme) all the way:
# read alike with every kind of colour vision, and in grey.
SCALES: dict[Theme, tuple[str, ...]] = {
    "light": ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"),
    "dark": ("#0d1b2a", "#12406b", "#1f78b4", "#74b9e0", "#f2fafe"),
}
MASKED: dict[Theme, str] = {"light": "#dcdcdc", "dark": "#3a3a3a"}
_OUTLINE = VERMILION  # the chosen patch
_OVERLAY = ((0.0, "rgba(230, 159, 0, 0)"), (1.0, "rgba(230, 159, 0, 0.9)"))
_MAX_TICKS = 40
_MAX_TOKEN = 12
_MAX_TEXTS = 16_384  # cells with a hover text of their own; beyond that the axes' names do


def head_map(
    weights: Floats,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    title: str = "",
    theme: Theme = "light",
    *,
    may_attend: npt.NDArray[np.bool_] | None = None,
    top: float | None = 1.0,
    query_title: str = "query token",
    key_title: str = "key token",
) -> go.Figure:
    """Draw one head's weights as a heatmap with square cells.

    weights: (Q, K), 0 to 1. may_attend: bool (Q, K), True = may attend; the rest is shown grey.
    top: the weight with the most ink; None takes the largest of this map.
    Raises ValueError when weights and tokens do not fit together.
    """
    weights = np.asarray(weights, np.float32)
    if weights.shape != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"weights are {weights.shape}, but there are {len(query_tokens)} query "
            f"and {len(key_tokens)} key tokens."
        )
    allowed = np.ones(weights.shape, np.bool_) if may_attend is None else may_attend
    figure = go.Figure(
        go.Heatmap(
            z=np.where(allowed, weights, np.nan).astype(np.float32),
            zmin=0,
            zmax=top_of(weights) if top is None else top,
            colorscale=list(SCALES[theme]),
            colorbar={
                "title": {"text": "weight"},
                "thickness": 12,
                "len": 0.9,
                "tickformat": ".2~g",
            },
            xgap=1 if max(weights.shape) <= 32 else 0,
            ygap=1 if max(weights.shape) <= 32 else 0,
            **_hover(weights, query_tokens, key_tokens, allowed),
        )
    )
    figure.update_layout(
        title={"text": escape(title, quote=False)},
        plot_bgcolor=MASKED[theme],
        height=int(np.clip(170 + 26 * len(query_tokens), 360, 680)),
        margin={"l": 8, "r": 8, "t": 48 if title else 16, "b": 8},
    )
    figure.update_xaxes(
        title={"text": f"{key_title} (key, across)"},
        tickangle=-45,
        constrain="domain",
        **_ticks(key_tokens),
    )
    figure.update_yaxes(
        title={"text": f"{query_title} (query, down)"},
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
        **_ticks(query_tokens),
    )
    return figure


def patch_overlay(
    weights: Floats,
    picture: npt.NDArray[np.uint8],
    title: str = "",
    theme: Theme = "light",
    *,
    chosen: tuple[int, int] | None = None,
    top: float | None = None,
) -> go.Figure:
    """Draw attention over patches onto the picture they were cut from.

    weights: (side, side). picture: uint8 (C, height, width) or (height, width).
    chosen: row and column, from 0, of the patch that asks; it gets an outline.
    top: the weight with the most colour; None takes the largest.
    A click on a patch selects a point whose ``point_index`` is row * side + column.
    """
    weights = np.asarray(weights, np.float32)
    side = weights.shape[0]
    size = picture.shape[-1] / side  # pixels to a side of a patch
    centres = (np.arange(side) + 0.5) * size - 0.5
    columns, rows = np.meshgrid(centres, centres)
    figure = go.Figure([_picture(picture), _veil(weights, centres, top), _targets(columns, rows)])
    figure.data[2].hovertext = [
        f"patch {i // side + 1},{i % side + 1}: weight {weight:.4f}"
        for i, weight in enumerate(weights.ravel())
    ]
    if chosen is not None:
        left, upper = chosen[1] * size - 0.5, chosen[0] * size - 0.5
        figure.add_shape(
            type="rect",
            x0=left,
            x1=left + size,
            y0=upper,
            y1=upper + size,
            line={"color": _OUTLINE, "width": 3},
        )
    figure.update_layout(
        title={"text": escape(title, quote=False)},
        height=380,
        margin={"l": 8, "r": 8, "t": 48 if title else 16, "b": 8},
        hovermode="closest",
        hoverdistance=100,
        clickmode="event+select",
        dragmode=False,
        plot_bgcolor=MASKED[theme],
    )
    shown: dict[str, Any] = {"visible": False, "constrain": "domain"}
    ends = (-0.5, picture.shape[-1] - 0.5)
    figure.update_xaxes(range=ends, **shown)
    figure.update_yaxes(range=ends[::-1], scaleanchor="x", **shown)
    return figure


def patch_weights(weights: Floats, query: int | None, *, has_cls: bool) -> Floats:
    """Return (side, side): what a query pays to each patch.

    weights: (Q, K) of one head. query: its row, or None for the mean of all rows, which is what
    the patches receive. A CLS token in front gets its share too, but stands nowhere in the picture.
    """
    row = weights.astype(np.float32).mean(0) if query is None else weights[query]
    patches = row[1:] if has_cls else row
    side = round(float(np.sqrt(len(patches))))
    return np.asarray(patches, np.float32).reshape(side, side)


def top_of(weights: Floats) -> float:
    """Return the largest weight, as the end of a colour scale: never 0, never NaN."""
    largest = float(np.nanmax(weights, initial=0.0))
    return largest if largest > 0 else 1.0


def _hover(
    weights: Floats, query: Sequence[str], key: Sequence[str], allowed: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    if weights.size > _MAX_TEXTS:
        return {"hovertemplate": "query %{y}<br>key %{x}<br>weight %{z:.4f}<extra></extra>"}
    queries = [f"query {i}: {escape(token, quote=False)}" for i, token in enumerate(query, 1)]
    keys = [f"key {i}: {escape(token, quote=False)}" for i, token in enumerate(key, 1)]
    texts = [
        [
            f"{q}<br>{k}<br>weight {weight:.4f}{'' if may else ' (masked)'}"
            for k, weight, may in zip(keys, row, allowed_row, strict=True)
        ]
        for q, row, allowed_row in zip(queries, weights.tolist(), allowed.tolist(), strict=True)
    ]
    return {"hovertext": texts, "hoverinfo": "text"}


def _ticks(tokens: Sequence[str]) -> dict[str, Any]:
    """Return an axis whose every place, or every n-th of many, carries its token."""
    every = -(-len(tokens) // _MAX_TICKS)
    shown = range(0, len(tokens), every)
    return {
        "tickmode": "array",
        "tickvals": list(shown),
        "ticktext": [short(tokens[i]) for i in shown],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def short(token: str) -> str:
    """Return a token as an axis can carry it: cut where it is long, safe in plotly's markup."""
    cut = token if len(token) <= _MAX_TOKEN else f"{token[: _MAX_TOKEN - 1]}…"
    return escape(cut if cut.strip() else "␣", quote=False)


def _picture(picture: npt.NDArray[np.uint8]) -> go.Image:
    channels = picture[None] if picture.ndim == 2 else picture
    colours = (
        np.broadcast_to(channels, (3, *channels.shape[1:])) if len(channels) == 1 else channels
    )
    return go.Image(z=np.moveaxis(colours, 0, -1).astype(np.uint8), hoverinfo="skip")


def _veil(weights: Floats, centres: Floats, top: float | None) -> go.Heatmap:
    return go.Heatmap(
        z=weights,
        x=centres,
        y=centres,
        zmin=0,
        zmax=top_of(weights) if top is None else top,
        colorscale=[list(stop) for stop in _OVERLAY],
        colorbar={"title": {"text": "weight"}, "thickness": 12, "len": 0.9, "tickformat": ".2~g"},
        xgap=1,
        ygap=1,
        hoverinfo="skip",
    )


def _targets(columns: Floats, rows: Floats) -> go.Scatter:
    return go.Scatter(
        x=columns.ravel(),
        y=rows.ravel(),
        mode="markers",
        marker={"opacity": 0, "size": 24},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hoverinfo="text",
        showlegend=False,
    )
