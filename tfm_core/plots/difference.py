"""The difference of two maps, in two hues that every kind of colour vision tells apart.

Orange: more in the first; purple: more in the second (ColorBrewer's PuOr); no difference is paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.attention import LEGEND, MASKED, Floats, Theme, head_map
from tfm_core.sentences import N_

DIVERGING: dict[Theme, tuple[str, ...]] = {
    "light": ("#7f3b08", "#e08214", "#f7f7f7", "#8073ac", "#2d004b"),
    "dark": ("#ffc57a", "#b35806", "#1a1e25", "#6a4fb3", "#cdbdfb"),
}


def difference_map(
    left: Floats,
    right: Floats,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    theme: Theme = "light",
    *,
    names: tuple[str, str] = ("first", "second"),
    may_attend: npt.NDArray[np.bool_] | None = None,
    top: float | None = None,
    query_title: str = N_("query token"),
    key_title: str = N_("key token"),
) -> go.Figure:
    """Draw right minus left as a heatmap with square cells, the scale even around 0.

    left and right: (Q, K). names: what the two are, for hover and the scale. top: the difference
    with the most colour; None takes the largest. Raises ValueError when shapes do not fit.
    """
    if left.shape != right.shape:
        raise ValueError(f"The maps are {left.shape} and {right.shape}; they must be alike.")
    left, right = np.asarray(left, np.float32), np.asarray(right, np.float32)
    difference = right - left
    figure = head_map(
        difference,
        query_tokens,
        key_tokens,
        theme=theme,
        may_attend=may_attend,
        query_title=query_title,
        key_title=key_title,
    )
    end = top if top is not None else float(np.abs(difference).max(initial=0.0)) or 1.0
    first, second = (escape(name, quote=False) for name in names)
    heat = figure.data[0]
    heat.update(
        zmin=-end,
        zmax=end,
        colorscale=list(DIVERGING[theme]),
        colorbar={
            **LEGEND,
            "title": {
                **LEGEND["title"],
                "text": N_("{second} minus {first}", second=second, first=first),
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
        heat.hovertext = _hover(figure, left, right, (first, second), may_attend)
    figure.update_layout(plot_bgcolor=MASKED[theme])
    return figure


def _hover(
    figure: go.Figure,
    left: Floats,
    right: Floats,
    names: tuple[str, str],
    may_attend: npt.NDArray[np.bool_] | None,
) -> list[list[str]]:
    """Return the map's own hover texts with both weights and their difference."""
    texts = []
    for q, row in enumerate(figure.data[0].hovertext):
        cells = []
        for k, text in enumerate(row):
            tokens = "<br>".join(text.split("<br>")[:2])
            first, second = float(left[q, k]), float(right[q, k])
            masked = "" if may_attend is None or may_attend[q, k] else " (masked)"
            cells.append(
                f"{tokens}<br>{names[0]} {first:.4f}<br>{names[1]} {second:.4f}"
                f"<br>difference {second - first:+.4f}{masked}"
            )
        texts.append(cells)
    return texts
