"""Attention maps: weights in colour, tokens on the axes; query down, key across.

Zero is the paper and more ink is more weight, on light and on dark; what the mask forbids is grey.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.attention.maps import MapView
from tfm_core.plots.chart import cells, texts_of
from tfm_core.plots.kinds import HOLES, legend_to
from tfm_core.plots.palette import ThemeName
from tfm_core.plots.texts.writing import marked
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Sentence

Theme = ThemeName

MANY_KEYS = 40
"""Keys from which on most weights are too small for a scale that ends at 1."""
_STRONG = 99  # per cent of the weights of such a map that its scale tells apart


_STRIP = 4  # so many times wider than high, square cells would be tiny
_FLAT = 300  # pixels, the height of such a map
_MAX_TOKEN = 12
_MAX_TEXTS = 16_384  # cells with a hover text of their own; beyond that the axes' names do


_WEIGHT = (  # of a cell that may be read, and of one that is masked
    # the span marks the number for the animation, which writes another one there while it plays
    N_("{query}<br>{key}<br>weight <span>{w:.4f}</span>"),
    N_("{query}<br>{key}<br>weight <span>{w:.4f}</span> (masked)"),
)
_DIFFERENCE = (
    N_("{query}<br>{key}<br>{one} {a:.4f}<br>{other} {b:.4f}<br>difference {by:+.4f}"),
    N_("{query}<br>{key}<br>{one} {a:.4f}<br>{other} {b:.4f}<br>difference {by:+.4f} (masked)"),
)


def head_map(view: MapView, title: str = "", *, top: float | None = 1.0) -> go.Figure:
    """Draw one head's weights as a heatmap; its cells are square unless the map is a mere strip.

    view: of weights (Q, K), 0 to 1. top: the weight with the most ink; None: see ``top_of``.
    """
    weights = np.asarray(view.weights, np.float32)
    seen = view.seen(weights)
    top = top_of(seen) if top is None else top
    says: Says = N_("query %{y}<br>key %{x}<br>weight %{z:.4f}<extra></extra>")
    if weights.size <= _MAX_TEXTS:
        says = _says(view, _WEIGHT, w=weights)
    legend = legend_to(0, top, largest=float(np.nanmax(seen, initial=0.0)))
    return _map(view, seen, "share", legend, says, title=title, top=80 if title else 48)


def _map(
    view: MapView,
    seen: Floats,
    scale: Literal["share", "signed"],
    legend: dict[str, Any],
    says: Says,
    *,
    title: str = "",
    top: int,
) -> go.Figure:
    """Draw cells (Q, K) with their tokens."""
    is_flat = len(view.key) >= _STRIP * len(view.query)  # few words, many patches
    square = {"scaleanchor": None if is_flat else "x", "constraintoward": "top"}
    return cells(
        seen,
        scale,
        (legend["tickvals"][0], legend["tickvals"][-1]),
        says=says,
        gap=1 if max(seen.shape) <= 32 else 0,
        trace={"colorbar": legend, "showscale": True, "name": legend["title"]["text"]},
        height=_FLAT if is_flat else int(np.clip(160 + 24 * len(view.query), 380, 660)),
        top=top,
        x={
            "title": N_("{key_title} (key)", key_title=view.key_title),
            "names": [_glossed(token, view.glosses) for token in view.key],
            "tickangle": -45,
            "constrain": "domain",
        },
        y={
            "title": N_("{query_title} (query)", query_title=view.query_title),
            "names": [_glossed(token, view.glosses) for token in view.query],
            "constrain": "domain",
            **square,
        },
        title={"text": escape(title, quote=False)},
        plot_bgcolor=HOLES,
    )


def top_of(weights: Floats) -> float:
    """Return the end of a colour scale, never 0, never NaN: the largest weight (..., Q, K).

    Of many keys it is a weight that few exceed: else the only weight of a first row would hide all
    others, which are as small as their rows are long.
    """
    largest = float(np.nanmax(weights, initial=0.0))
    known = weights[np.isfinite(weights)]
    if weights.shape[-1] >= MANY_KEYS and len(known):
        largest = float(np.percentile(known, _STRONG)) or largest
    return largest if largest > 0 else 1.0


def usual_top(weights: Floats) -> float:
    """Return where the scale of weights (..., Q, K) ends if nobody chooses: 1 for few keys."""
    return top_of(weights) if weights.shape[-1] >= MANY_KEYS else 1.0


Says = str | list[list[Sentence]]


def _says(view: MapView, said: tuple[str, str], **values: npt.ArrayLike) -> list[list[Sentence]]:
    """Return a text for each cell. said: templates, if it may be read and if it is masked."""
    queries: list[str] = [escape(words, quote=False) for words in view.query_words or ()]
    queries = queries or [
        N_("query {n}: {name}", n=i, name=escape(name, quote=False))
        for i, name in enumerate(view.query, 1 + view.first[0])
    ]
    keys = [
        N_("key {n}: {name}", n=i, name=escape(token, quote=False))
        for i, token in enumerate(view.key, 1 + view.first[1])
    ]
    templates = np.array(said, object)[1 - view.allowed.astype(int)]
    return texts_of(templates, rows={"query": queries}, columns={"key": keys}, **values)


def _glossed(token: str, glosses: Mapping[str, str]) -> str:
    gloss = glosses.get(token)
    return short(token) if gloss is None else f"{short(token)} <i>{escape(gloss, quote=False)}</i>"


def short(token: str) -> str:
    """Return a token as an axis can carry it: cut where it is long, safe in plotly's markup."""
    cut = token if len(token) <= _MAX_TOKEN else f"{token[: _MAX_TOKEN - 1]}…"
    return escape(marked(cut) if cut.strip(" ") else "␣", quote=False)


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


def difference_map(
    left: MapView,
    right: MapView,
    *,
    names: tuple[str, str] = ("first", "second"),
    top: float | None = None,
) -> go.Figure:
    """Draw right minus left as a heatmap with square cells, the scale even around 0.

    left and right: of weights (Q, K); the names are those of the left. names: what the two are, for
    hover and the scale. top: the difference with the most colour; None takes the largest. Grey is
    what both masks forbid. Raises ValueError when shapes do not fit.
    """
    if left.weights.shape != right.weights.shape:
        raise ValueError(
            f"The maps are {left.weights.shape} and {right.weights.shape}; they must be alike."
        )
    first, second = (np.asarray(one.weights, np.float32) for one in (left, right))
    difference = second - first
    view = replace(
        left, weights=difference, may_attend=left.allowed | right.allowed, query_words=()
    )
    end = top if top is not None else float(np.abs(difference).max(initial=0.0)) or 1.0
    one, other = (escape(name, quote=False) for name in names)
    says: Says = N_("query %{y}<br>key %{x}<br>%{z:+.4f}<extra></extra>")
    if difference.size <= _MAX_TEXTS:
        says = _says(view, _DIFFERENCE, one=one, other=other, a=first, b=second, by=difference)
    legend = legend_to(-end, end, N_("{second} minus {first}", second=other, first=one))
    legend |= {"title": {**legend["title"], "side": "top"}, "len": 0.8}
    return _map(view, view.seen(difference), "signed", legend, says, top=64)
