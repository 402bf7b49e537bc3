"""The difference of two maps, in two hues that every kind of colour vision tells apart.

Orange: more in the first; purple: more in the second (ColorBrewer's PuOr); no difference is paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.attention import LEGEND, MASKED, Floats, Theme, head_map
from tfm_core.sentences import N_

DIVERGING: dict[Theme, tuple[str, ...]] = {
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
    said = tuple(escape(name, quote=False) for name in names)
    heat = figure.data[0]
    heat.update(
        zmin=-end,
        zmax=end,
        colorscale=list(DIVERGING[theme]),
        colorbar={
            **LEGEND,
            "title": {
                **LEGEND["title"],
                "text": N_("{second} minus {first}", second=said[1], first=said[0]),
                "side": "top",
            },
            "len": 0.8,
            "tickvals": [-end, 0, end],
        },
    )
    figure.update_layout(margin={"t": 64})
    if heat.hovertext is None:
        heat.hovertemplate = "query %{y}<br>key %{x}<br>%{z:+.4f}<extra></extra>"
    else:
        heat.hovertext = _hover(heat.hovertext, (first, second), said, view.allowed)
    figure.update_layout(plot_bgcolor=MASKED[theme])
    return figure


def _hover(
    texts_of_map: Sequence[Sequence[str]],
    weights: tuple[Floats, Floats],
    names: tuple[str, ...],
    allowed: npt.NDArray[np.bool_],
) -> list[list[str]]:
    """Return the map's own hover texts with both weights and their difference."""
    texts = []
    for q, row in enumerate(texts_of_map):
        cells = []
        for k, text in enumerate(row):
            tokens = "<br>".join(text.split("<br>")[:2])
            first, second = (float(one[q, k]) for one in weights)
            masked = "" if allowed[q, k] else " (masked)"
            cells.append(
                f"{tokens}<br>{names[0]} {first:.4f}<br>{names[1]} {second:.4f}"
                f"<br>difference {second - first:+.4f}{masked}"
            )
        texts.append(cells)
    return texts
