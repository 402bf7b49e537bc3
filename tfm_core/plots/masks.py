"""Masked attention as figures: a map of weights with its numbers, and the colours of scores.

Query runs down, key across. Scores have a sign, so their scale has two ends and a quiet middle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import SCALES, Floats, Theme, short
from tfm_core.sentences import N_

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
        "xaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(key))),
            "ticktext": [short(token) for token in key],
            "tickangle": -60,
            "showgrid": False,
            "title": {"text": N_("key")},
        },
        "yaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(query))),
            "ticktext": [short(token) for token in query],
            "autorange": "reversed",
            "showgrid": False,
            "title": {"text": N_("query")},
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
