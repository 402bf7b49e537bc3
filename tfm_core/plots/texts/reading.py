"""Figures of encoders: labels, the words behind them, and candidates for a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.chart import cells, chart, wide
from tfm_core.plots.heads.attention import SCALES, Theme
from tfm_core.plots.kinds import bars, lay_out
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, percent

_LABELS = {"negative": VERMILION, "neutral": GREY, "positive": GREEN}
EXPLAINED: dict[str, tuple[str, str, str]] = {  # name -> words, colour, pattern
    "needed": (N_("lost without it"), VERMILION, ""),
    "relevance": (N_("relevance"), BLUE, "/"),
    "rollout": (N_("rollout"), PURPLE, "x"),
}


def label_bars(labels: Sequence[str], probabilities: Floats) -> go.Figure:
    """Draw the probability of each label, 0 to 1."""
    figure = go.Figure(
        bars(
            [escape(label) for label in labels],
            probabilities,
            [_LABELS.get(label, BLUE) for label in labels],
            texts=[percent(value) for value in probabilities],
            textposition="auto",
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    x = {"title": N_("probability"), "range": [0, 1], "tickformat": ".0%", "dtick": 0.25}
    return lay_out(figure, height=80 + 36 * len(labels), right=24, x=x, y={})


def _word_ticks(names: Sequence[str], marked: Sequence[int]) -> dict[str, Any]:
    """Return an axis of words, the marked ones with a sign."""
    texts = [f"▸ {name}" if index in marked else name for index, name in enumerate(names)]
    return {"tickvals": list(range(len(names))), "ticktext": texts, "tickangle": -40}


def head_rows(
    heads: Floats, words: Sequence[str], *, theme: Theme, marked: Sequence[int] = ()
) -> go.Figure:
    """Draw the attention of one query in every head: heads (L, H, n), head down, word across.

    marked: places of words with a sign. Raises ValueError when weights and words do not fit.
    """
    heads = np.asarray(heads, np.float32)
    if heads.shape[2] != len(words):
        raise ValueError(f"weights are {heads.shape}, but there are {len(words)} words.")
    n_layers, n_heads, n = heads.shape
    rows = [
        N_("layer {layer}, head {head}", layer=i + 1, head=j + 1)
        for i in range(n_layers)
        for j in range(n_heads)
    ]
    names = [escape(word, quote=False) for word in words]
    return cells(
        heads.reshape(-1, n),
        SCALES[theme],
        (0, float(heads.max(initial=1e-6))),
        trace={
            "y": rows,
            "customdata": np.tile(np.array(names), (len(rows), 1)),
            "hovertemplate": N_("%{y} attends to “%{customdata}”: %{z:.4f}<extra></extra>"),
        },
        height=150 + 26 * len(rows),
        right=44,  # tilted words
        x={"title": N_("key: the word read"), "side": "top", **_word_ticks(names, marked)},
        y={"title": N_("attention head"), "autorange": "reversed"},
    )


def word_bars(
    words: Sequence[str], values: Mapping[str, Floats], marked: Sequence[int] = ()
) -> go.Figure:
    """Draw the value of each word in each explanation, as a share of the largest.

    values: a name in EXPLAINED -> (n,). marked: places of words with a sign.
    """
    names = [escape(word, quote=False) for word in words]
    shares, looks = {}, []
    for name, heights in values.items():
        label, colour, pattern = EXPLAINED[name]
        heights = np.asarray(heights, np.float32)
        shares[label] = heights / float(np.abs(heights).max(initial=1e-9))
        marker = {"color": colour, "pattern": {"shape": pattern, "solidity": 0.25}}
        looks.append({"customdata": heights, "hovertext": names, "marker": marker})
    lowest = min(0.0, *(float(share.min(initial=0.0)) for share in shares.values()))
    return chart(
        wide(range(len(names)), shares),
        "bars",
        looks=looks,
        hover=lambda label: N_(
            "%{{hovertext}}: %{{customdata:.4f}}<extra>{label}</extra>", label=label
        ),
        right=16,
        x={"title": N_("word"), **_word_ticks(names, marked)},
        y={"title": N_("share of the largest"), "range": [1.05 * lowest, 1.05]},
        barmode="group",
        bargap=0.25,
    )


def word_choice(words: Sequence[str], model: Floats, truth: Floats | None) -> go.Figure:
    """Draw candidates for a gap: the model's probabilities beside the true ones, both (n,).

    truth: None if no word fits.
    """
    figure = go.Figure()
    names = [escape(word, quote=False) for word in words]
    sides = [(N_("model"), model, BLUE, "")]
    if truth is not None:
        sides.insert(0, (N_("truth"), truth, GREEN, "/"))
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
    return lay_out(
        figure,
        height=110 + 36 * len(names),
        right=16,
        x={"title": N_("probability"), "rangemode": "tozero", "tickformat": ".0%"},
        y={"title": N_("word"), "autorange": "reversed"},
        barmode="group",
        bargap=0.3,
    )
