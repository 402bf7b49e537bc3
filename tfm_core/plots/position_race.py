"""Kinds of positions compared: which notice a shuffle, which learn, which extrapolate."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import Floats
from tfm_core.plots.kinds import bars
from tfm_core.plots.palette import GREY, HUES
from tfm_core.plots.positions import BORDER, MARGIN, axes, from_zero
from tfm_core.plots.thinning import thin
from tfm_core.sentences import N_
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.positions.position import Look

CAUSAL = Look("orange", "dot", "star")
"""A causal mask without positions: it too tells the order."""


def look(kind: str | None) -> Look:
    """Return the one look that a kind of positions has in every figure; None: the mask alone."""
    return CAUSAL if kind is None else POSITIONS[kind].look


def noticed(changes: Mapping[str, tuple[str | None, float]]) -> go.Figure:
    """Draw how much each model noticed: label -> kind of positions and change, 0 = not at all.

    The kind is None where a causal mask alone, or reading in order, tells where a token stands.
    """
    labels = list(changes)
    values = np.array([value for _, value in changes.values()], np.float32)
    figure = go.Figure(
        bars(
            [escape(label, quote=False).replace(", ", ",<br>") for label in labels],  # phones
            values,
            [HUES[look(kind).colour] for kind, _ in changes.values()],
            texts=[f"{100 * value:.3g} %" if value >= 1e-5 else "0: a bag" for value in values],
            hovertemplate="%{y}: %{x:.2e}<extra></extra>",
        )
    )
    axes(figure, N_("mean change of a vector"), "")
    figure.update_xaxes(range=[0, float(max(values.max(initial=0), 0.01)) * 1.35], tickformat=".0%")
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(height=90 + 44 * len(labels), margin={**MARGIN, "t": 8})
    return figure


def race(
    series: Mapping[str, tuple[str, Floats, Floats]],
    x_title: str,
    y_title: str,
    *,
    trained: float | None = None,
) -> go.Figure:
    """Draw shares (0 to 1): kind of positions -> label, x (n,), y (n,); nan leaves a gap.

    trained: where the trained lengths end, drawn as a line.
    """
    figure = go.Figure()
    for kind, (label, x, y) in series.items():
        own = look(kind)
        kept = thin(x, np.nan_to_num(y))
        figure.add_scatter(
            x=np.asarray(x, np.float32)[kept],
            y=np.asarray(y, np.float32)[kept],
            name=escape(label, quote=False),
            mode="lines+markers" if len(kept) <= 40 else "lines",
            line={"color": HUES[own.colour], "dash": own.dash},
            marker={"symbol": own.marker, "size": 7},
            hovertemplate=N_(
                "{x_title} %{{x:,}}: %{{y:.1%}}<extra>{label}</extra>",
                x_title=x_title,
                label=escape(label),
            ),
        )
    axes(figure, x_title, y_title)
    from_zero(figure, [x for _label, x, _y in series.values()])
    figure.update_yaxes(range=[0, 1.04], tickformat=".0%")
    if trained is not None:
        figure.add_vline(
            x=trained,
            line={"color": GREY, "dash": "dot", "width": 1},
            annotation={"text": BORDER, "font": {"size": 11, "color": GREY}},
            annotation_position="bottom right",
        )
    return figure
