"""Attention maps: weights in colour, tokens on the axes; query down, key across.

Zero is the paper and more ink is more weight, on light and on dark; what the mask forbids is grey.
Differences and scores have a sign, so their scale has two ends (ColorBrewer's PuOr), which every
kind of colour vision tells apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.kinds import ticks
from tfm_core.plots.palette import ThemeName
from tfm_core.plots.texts.writing import marked
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Sentence

Theme = ThemeName

# One hue, lightness falling (light theme: ColorBrewer Blues) or rising (dark theme) all the way:
# read alike with every kind of colour vision, and in grey.
SCALES: dict[Theme, tuple[str, ...]] = {
    "light": ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"),
    "dark": ("#0d1b2a", "#12406b", "#1f78b4", "#74b9e0", "#f2fafe"),
}
MASKED: dict[Theme, str] = {"light": "#dcdcdc", "dark": "#3a3a3a"}
LEGEND: dict[str, Any] = {  # above the map, where it takes no width from it
    "title": {"text": N_("weight"), "side": "right", "font": {"size": 12}},
    "orientation": "h",
    "thickness": 8,
    "len": 0.6,
    "x": 0.5,
    "xanchor": "center",
    "y": 1.0,
    "yanchor": "bottom",
    "ypad": 4,
    "tickformat": ".2~g",
    "nticks": 4,
}


MANY_KEYS = 40
"""Keys from which on most weights are too small for a scale that ends at 1."""
_STRONG = 99  # per cent of the weights of such a map that its scale tells apart


def legend_to(top: float, largest: float = 0.0) -> dict[str, Any]:
    """Return the legend of a scale from 0 to ``top``, which says its end and what lies beyond."""
    legend = {**LEGEND, "tickmode": "array", "tickvals": [0, top / 2, top]}
    if largest <= top:
        return legend
    return {**legend, "ticktext": ["0", f"{top / 2:.2g}", f"≥ {top:.2g}"]}


_STRIP = 4  # so many times wider than high, square cells would be tiny
_FLAT = 300  # pixels, the height of such a map
_MAX_TICKS = 40
_MAX_TOKEN = 12
_MAX_TEXTS = 16_384  # cells with a hover text of their own; beyond that the axes' names do


def head_map(
    view: MapView, title: str = "", theme: Theme = "light", *, top: float | None = 1.0
) -> go.Figure:
    """Draw one head's weights as a heatmap; its cells are square unless the map is a mere strip.

    view: of weights (Q, K), 0 to 1. top: the weight with the most ink; None: see ``top_of``.
    """
    weights = np.asarray(view.weights, np.float32)
    seen = view.seen(weights)
    top = top_of(seen) if top is None else top
    is_flat = len(view.key) >= _STRIP * len(view.query)  # few words, many patches
    # the whole layout at once: plotly takes milliseconds for each update of a figure
    return go.Figure(
        go.Heatmap(
            z=seen,
            zmin=0,
            zmax=top,
            colorscale=list(SCALES[theme]),
            colorbar=legend_to(top, float(np.nanmax(seen, initial=0.0))),
            xgap=1 if max(weights.shape) <= 32 else 0,
            ygap=1 if max(weights.shape) <= 32 else 0,
            **_hover(view, weights),
        ),
        {
            "title": {"text": escape(title, quote=False)},
            "plot_bgcolor": MASKED[theme],
            "height": _FLAT if is_flat else int(np.clip(160 + 24 * len(view.query), 380, 660)),
            "margin": {"l": 8, "r": 8, "t": 80 if title else 48, "b": 8},
            "xaxis": {
                "title": {"text": N_("{key_title} (key)", key_title=view.key_title)},
                "tickangle": -45,
                "constrain": "domain",
                **_ticks(view.key, view.glosses),
            },
            "yaxis": {
                "title": {"text": N_("{query_title} (query)", query_title=view.query_title)},
                "autorange": "reversed",
                "scaleanchor": None if is_flat else "x",
                "constrain": "domain",
                "constraintoward": "top",
                **_ticks(view.query, view.glosses),
            },
        },
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


def _hover(view: MapView, weights: Floats) -> dict[str, Any]:
    if weights.size > _MAX_TEXTS:
        return {"hovertemplate": N_("query %{y}<br>key %{x}<br>weight %{z:.4f}<extra></extra>")}
    # the span marks the number for the animation, which writes another one there while it plays
    queries: list[str] = [escape(words, quote=False) for words in view.query_words or ()]
    queries = queries or [
        N_("query {n}: {name}", n=i, name=escape(name, quote=False))
        for i, name in enumerate(view.query, 1 + view.first[0])
    ]
    keys = [
        N_("key {n}: {name}", n=i, name=escape(token, quote=False))
        for i, token in enumerate(view.key, 1 + view.first[1])
    ]
    texts = [
        [
            N_("{query}<br>{key}<br>weight <span>{w:.4f}</span>", query=q, key=k, w=weight)
            if may
            else N_(
                "{query}<br>{key}<br>weight <span>{w:.4f}</span> (masked)", query=q, key=k, w=weight
            )
            for k, weight, may in zip(keys, row, allowed_row, strict=True)
        ]
        for q, row, allowed_row in zip(
            queries, weights.tolist(), view.allowed.tolist(), strict=True
        )
    ]
    return {"hovertext": texts, "hoverinfo": "text"}


def _ticks(tokens: Sequence[str], glosses: Mapping[str, str]) -> dict[str, Any]:
    """Return an axis whose every place, or every n-th of many, carries its token and gloss."""
    every = -(-len(tokens) // _MAX_TICKS)
    shown = range(0, len(tokens), every)
    return {
        **ticks([_glossed(tokens[i], glosses) for i in shown]),
        "tickvals": list(shown),
        "tickfont": {"size": 12 if len(shown) <= 16 else 10},
        "ticks": "",
    }


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


DIFFERENCE: dict[Theme, tuple[str, ...]] = {
    "light": ("#7f3b08", "#e08214", "#f7f7f7", "#8073ac", "#2d004b"),
    "dark": ("#ffc57a", "#b35806", "#1a1e25", "#6a4fb3", "#cdbdfb"),
}


def difference_map(
    left: MapView,
    right: MapView,
    theme: Theme = "light",
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
    figure = head_map(view, theme=theme)
    end = top if top is not None else float(np.abs(difference).max(initial=0.0)) or 1.0
    escaped = tuple(escape(name, quote=False) for name in names)
    heat = figure.data[0]
    heat.update(
        zmin=-end,
        zmax=end,
        colorscale=list(DIFFERENCE[theme]),
        colorbar={
            **LEGEND,
            "title": {
                **LEGEND["title"],
                "text": N_("{second} minus {first}", second=escaped[1], first=escaped[0]),
                "side": "top",
            },
            "len": 0.8,
            "tickvals": [-end, 0, end],
        },
    )
    figure.update_layout(margin={"t": 64})
    if heat.hovertext is None:
        heat.hovertemplate = N_("query %{y}<br>key %{x}<br>%{z:+.4f}<extra></extra>")
    else:
        heat.hovertext = _difference_hover(heat.hovertext, (first, second), escaped, view.allowed)
    figure.update_layout(plot_bgcolor=MASKED[theme])
    return figure


def _difference_hover(
    texts_of_map: Sequence[Sequence[Sentence]],
    weights: tuple[Floats, Floats],
    names: tuple[str, ...],
    allowed: npt.NDArray[np.bool_],
) -> list[list[Sentence]]:
    """Return the map's own hover texts with both weights and their difference."""
    texts = []
    for q, row in enumerate(texts_of_map):
        cells = []
        for k, text in enumerate(row):
            first, second = (float(one[q, k]) for one in weights)
            values = {
                "query": text.values["query"],
                "key": text.values["key"],
                "one": f"{names[0]} {first:.4f}",
                "other": f"{names[1]} {second:.4f}",
                "by": f"{second - first:+.4f}",
            }
            cells.append(
                N_("{query}<br>{key}<br>{one}<br>{other}<br>difference {by}", **values)
                if allowed[q, k]
                else N_(
                    "{query}<br>{key}<br>{one}<br>{other}<br>difference {by} (masked)", **values
                )
            )
        texts.append(cells)
    return texts


DIVERGING: dict[Theme, tuple[str, ...]] = {  # ColorBrewer PuOr: below zero orange, above purple
    "light": ("#b35806", "#fdb863", "#f7f5f0", "#b2abd2", "#542788"),
    "dark": ("#f0a24a", "#8a5310", "#1d2128", "#5b4a92", "#b9a9ea"),
}
NAN = "#d55e00"


def weight_map(
    weights: Floats,
    query: Sequence[str],
    key: Sequence[str],
    title: str = "",
    theme: Theme = "light",
) -> go.Figure:
    """Draw weights (Q, K) with their numbers; what is not a number is orange.

    Raises ValueError when the map and the tokens do not fit together.
    """
    if weights.shape != (len(query), len(key)):
        raise ValueError(
            f"The weights are {weights.shape}, but there are {len(query)} query and "
            f"{len(key)} key tokens."
        )
    # the whole layout at once: plotly takes milliseconds for each update of a figure
    layout = {
        "xaxis": {"title": {"text": N_("key")}, "tickangle": -60, **ticks(list(map(short, key)))},
        "yaxis": {
            "title": {"text": N_("query")},
            "autorange": "reversed",
            **ticks(list(map(short, query))),
        },
        "title": {"text": title},
        "height": int(np.clip(150 + 26 * len(query), 200, 520)),
        "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
    }
    return go.Figure(_heat(weights, theme), layout)


def _heat(weights: Floats, theme: Theme) -> go.Heatmap:
    shown = np.asarray(weights, np.float32)
    is_nan = np.isnan(shown)
    text = np.where(is_nan, "NaN", np.char.mod("%.2f", np.nan_to_num(shown)))
    scale = [[0.0, NAN], [0.0001, NAN]] if is_nan.any() else []
    stops = np.linspace(0.0001 if scale else 0.0, 1, len(SCALES[theme]))
    scale += [[float(stop), colour] for stop, colour in zip(stops, SCALES[theme], strict=True)]
    return go.Heatmap(
        z=np.where(is_nan, -0.0001, shown).astype(np.float32),
        zmin=-0.0001 if is_nan.any() else 0,
        zmax=1,
        colorscale=scale,
        showscale=False,
        xgap=1,
        ygap=1,
        text=text,
        texttemplate="%{text}" if weights.shape[1] <= 10 else None,
        hovertemplate=N_("query %{y}<br>key %{x}<br>weight %{text}<extra></extra>"),
    )
