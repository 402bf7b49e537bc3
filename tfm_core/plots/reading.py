"""Figures of reading: labels, which words they come from, and what may stand in a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import SCALES, Floats, Theme
from tfm_core.plots.kinds import bars
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.sentences import N_

_LABELS = {"negative": VERMILION, "neutral": GREY, "positive": GREEN}
EXPLAINED: dict[str, tuple[str, str, str]] = {  # name -> words, colour, pattern
    "needed": ("lost without it", VERMILION, ""),
    "relevance": ("relevance", BLUE, "/"),
    "rollout": ("rollout", PURPLE, "x"),
}
_MARGIN = {"l": 8, "r": 16, "t": 8, "b": 8}


def label_bars(labels: Sequence[str], probabilities: Floats) -> go.Figure:
    """Draw the probability of each label, 0 to 1."""
    figure = go.Figure(
        bars(
            [escape(label) for label in labels],
            probabilities,
            [_LABELS.get(label, BLUE) for label in labels],
            texts=[f"{value:.1%}" for value in probabilities],
            textposition="auto",
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(
        title={"text": N_("probability")}, range=[0, 1], tickformat=".0%", dtick=0.25
    )
    figure.update_layout(height=80 + 36 * len(labels), margin={**_MARGIN, "r": 24})
    return figure


def _name_places(figure: go.Figure, words: Sequence[str], marked: Sequence[int]) -> list[str]:
    """Write the words along the axis, the marked ones with a sign; return them for hover texts."""
    names = [escape(word, quote=False) for word in words]
    ticks = [f"▸ {name}" if index in marked else name for index, name in enumerate(names)]
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=ticks, tickangle=-40)
    return names


def head_rows(
    heads: Floats, words: Sequence[str], *, theme: Theme, marked: Sequence[int] = ()
) -> go.Figure:
    """Draw where one query looks in every head. heads: (L, H, n) weights; head down, word across.

    marked: places of words with a sign. Raises ValueError when weights and words do not fit.
    """
    heads = np.asarray(heads, np.float32)
    if heads.shape[2] != len(words):
        raise ValueError(f"weights are {heads.shape}, but there are {len(words)} words.")
    n_layers, n_heads, n = heads.shape
    rows = [f"layer {i + 1}, head {j + 1}" for i in range(n_layers) for j in range(n_heads)]
    figure = go.Figure(
        go.Heatmap(
            z=heads.reshape(-1, n),
            y=rows,
            customdata=np.tile(
                np.array([escape(word, quote=False) for word in words]), (len(rows), 1)
            ),
            zmin=0,
            zmax=float(heads.max(initial=1e-6)),
            colorscale=list(SCALES[theme]),
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate=N_("%{y} attends to “%{customdata}”: %{z:.4f}<extra></extra>"),
        )
    )
    _name_places(figure, words, marked)
    figure.update_xaxes(side="top", title={"text": N_("key: the word read")})
    figure.update_yaxes(autorange="reversed", title={"text": N_("attention head")})
    figure.update_layout(height=150 + 26 * len(rows), margin={**_MARGIN, "r": 44})  # tilted words
    return figure


def word_bars(
    words: Sequence[str], values: Mapping[str, Floats], marked: Sequence[int] = ()
) -> go.Figure:
    """Draw what each explanation says of each word, as a share of its largest value.

    values: a name in EXPLAINED -> (n,). marked: places of words with a sign.
    """
    figure = go.Figure()
    names = _name_places(figure, words, marked)
    lowest = 0.0
    for name, heights in values.items():
        label, colour, pattern = EXPLAINED[name]
        heights = np.asarray(heights, np.float32)
        largest = float(np.abs(heights).max(initial=1e-9))
        lowest = min(lowest, float((heights / largest).min(initial=0.0)))
        figure.add_bar(
            x=list(range(len(names))),
            y=heights / largest,
            name=label,
            customdata=heights,
            hovertext=names,
            marker={"color": colour, "pattern": {"shape": pattern, "solidity": 0.25}},
            hovertemplate=N_(
                "%{{hovertext}}: %{{customdata:.4f}}<extra>{label}</extra>", label=label
            ),
        )
    figure.update_yaxes(title={"text": N_("share of the largest")}, range=[1.05 * lowest, 1.05])
    figure.update_xaxes(title={"text": N_("word")})
    figure.update_layout(
        height=340,
        barmode="group",
        bargap=0.25,
        margin=_MARGIN,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    return figure


def word_choice(words: Sequence[str], model: Floats, truth: Floats | None) -> go.Figure:
    """Draw what may stand in a gap: the model's probabilities beside the true ones, both (n,).

    truth: None where nothing fits.
    """
    figure = go.Figure()
    names = [escape(word, quote=False) for word in words]
    sides = [("model", model, BLUE, "")]
    if truth is not None:
        sides.insert(0, ("truth", truth, GREEN, "/"))
    for label, values, colour, pattern in sides:
        figure.add_trace(
            bars(
                names,
                values,
                colour,
                name=label,
                marker={"pattern": {"shape": pattern, "solidity": 0.25}},
                hovertemplate=N_("“%{{y}}”: %{{x:.4f}}<extra>{label}</extra>", label=label),
            )
        )
    figure.update_yaxes(autorange="reversed", title={"text": N_("word")})
    figure.update_xaxes(title={"text": N_("probability")}, rangemode="tozero", tickformat=".0%")
    figure.update_layout(
        height=110 + 36 * len(names),
        barmode="group",
        bargap=0.3,
        margin=_MARGIN,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    return figure
