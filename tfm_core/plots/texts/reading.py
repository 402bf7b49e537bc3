"""Figures of encoders: labels, the words behind them, and candidates for a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.text.sentence import CHANCES
from tfm_core.plots.chart import cells, chart
from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, SCALES, VERMILION
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
    columns = {"label": [escape(label) for label in labels], "chance": probabilities}
    return chart(
        CHANCES.table({**columns, "words": [percent(value) for value in probabilities]}),
        "bars",
        x="chance",
        y="label",
        orientation="h",
        text="words",
        looks=[{"colour": [_LABELS.get(one, BLUE) for one in labels], "textposition": "auto"}],
        across={"range": [0, 1], "dtick": 0.25},
    )


def _word_names(words: Sequence[str], marked: Sequence[int]) -> list[str]:
    """Return words for an axis, the marked ones with a sign."""
    names = [escape(word, quote=False) for word in words]
    return [f"▸ {name}" if index in marked else name for index, name in enumerate(names)]


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
        },
        says=N_("%{y} attends to “%{customdata}”: %{z:.4f}<extra></extra>"),
        height=150 + 26 * len(rows),
        right=44,  # tilted words
        x={
            "title": N_("key: the word read"),
            "side": "top",
            "names": _word_names(words, marked),
            "tickangle": -40,
        },
        y={"title": N_("attention head")},
    )


def word_bars(
    words: Sequence[str], values: Mapping[str, Floats], marked: Sequence[int] = ()
) -> go.Figure:
    """Draw the value of each word in each explanation, as a share of the largest.

    values: a name in EXPLAINED -> (n,). marked: places of words with a sign.
    """
    names = _word_names(words, marked)
    parts = [
        pd.DataFrame({"word": range(len(names)), "number": heights, "name": name})
        for name, heights in values.items()
    ]
    table = CHANCES.table(pd.concat(parts))
    table["value"] = table["number"] / table.groupby("name")["number"].transform(
        lambda heights: max(heights.abs().max(), 1e-9)
    )
    return chart(
        table,
        "bars",
        x="word",
        y="value",
        colour="name",
        ticks=names,
        hover=["number"],
        looks={
            name: {"name": label, "colour": colour, "pattern": pattern}
            for name, (label, colour, pattern) in EXPLAINED.items()
        },
        across={"tickangle": -40},
        up={"range": [1.05 * min(0.0, float(table["value"].min())), 1.05]},
    )
