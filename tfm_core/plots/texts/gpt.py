"""Figures of models that read: guesses, the logit lens, a sum by digits, what heads look at."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.generation import NEXT
from tfm_core.plots.chart import cells, chart, texts_of
from tfm_core.plots.kinds import frame, legend_to
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.plots.texts.writing import marked
from tfm_core.sentences import N_, percent, whole_percent

Floats = npt.NDArray[np.floating]
_LEGEND = legend_to(0, 1, N_("probability")) | {"yref": "container", "y": 0.99, "yanchor": "top"}
"""At the figure's top: where plotly makes room for a scale it lifts the x title by as much."""


def shown(token: str) -> str:
    """Return a token for an axis: a space and a line break can be seen, and no markup acts."""
    return escape(marked(token), quote=False)


def guesses(best: Sequence[tuple[str, float]], truth: str, chance: float, rank: int) -> go.Figure:
    """Draw the likeliest tokens as bars, and always the true one, marked."""
    rows = [(token, p, token == truth) for token, p in best]
    if not any(is_true for *_, is_true in rows):
        rows.append((truth, chance, True))
    names = [
        N_("{token} ◀ came, no. {rank}", token=shown(t), rank=rank) if came else shown(t)
        for t, _, came in rows
    ]
    columns = {"place": range(len(rows)), "value": [p for _, p, _ in rows]}
    texts = [percent(p) if p >= 0.001 else "< 0.1%" for _, p, _ in rows]
    return chart(
        NEXT.table({**columns, "words": texts}),
        "bars",
        x="value",
        y="place",
        orientation="h",
        text="words",
        ticks=names,
        looks=[{"colour": [COLOURS["right"] if came else GREY for *_, came in rows]}],
    )


def lens_map(
    read: Sequence[str],
    says: Sequence[Sequence[str]],
    probability: Floats,
    final: Floats,
    *,
    most: int = 24,
) -> go.Figure:
    """Draw the likeliest next token for each token read (down) at each depth (across).

    read, says, probability, final: of ``look_through``. most: how many tokens to show, the first
    ones.
    """
    depth, length = len(probability), min(most, probability.shape[1])
    labels = [N_("embedding"), *(N_("layer {n}", n=i) for i in range(1, depth))]
    tokens = [shown(token) for token in read[:length]]
    answers = [[shown(said[t]) for said in says] for t in range(length)]
    hover = texts_of(
        N_(
            "after {token}, {depth}: {says}, p = {p:.4f}<br>"
            "the model’s own answer {answer} has p = {final:.4f} here"
        ),
        rows={"token": tokens, "answer": [row[-1] for row in answers]},
        columns={"depth": labels},
        says=answers,
        p=probability[:, :length].T,
        final=final[:, :length].T,
    )
    return cells(
        probability[:, :length].T,
        "share",
        (0, 1),
        says=hover,
        texts=answers,
        trace={"colorbar": _LEGEND, "showscale": True},
        height=150 + 28 * length,
        top=64,
        x={"title": N_("answer after"), "names": labels},
        y={"title": N_("token read"), "names": tokens},
    )


def digit_map(truth: Sequence[str], table: pd.DataFrame) -> go.Figure:
    """Draw the probability of each digit (down) at each position of the answer (across).

    The true digits have a frame and a tick. table: a row a place, a column a token.
    """
    names = [*(token for token in table if token not in SPECIALS), "<eos>"]
    chances = table[names].to_numpy().T  # (digits, places)
    true_cells = {(names.index(token), column) for column, token in enumerate(truth[: len(table)])}
    text = [
        [
            (whole_percent(p) if p >= 0.005 else "") + (" ✓" if (row, column) in true_cells else "")
            for column, p in enumerate(values)
        ]
        for row, values in enumerate(chances)
    ]
    figure = cells(
        chances,
        "share",
        (0, 1),
        says=N_("position %{x}, %{customdata}: %{z:.5f}<extra></extra>"),
        texts=text,
        trace={
            "colorbar": _LEGEND,
            "showscale": True,
            "customdata": [[shown(name)] * chances.shape[1] for name in names],
            "x": list(range(1, chances.shape[1] + 1)),
        },
        height=480,
        top=64,
        x={"title": N_("position in the answer"), "dtick": 1},
        y={"title": N_("digit"), "names": [shown(name) for name in names]},
    )
    for row, column in true_cells:
        ends = (column + 0.5, row - 0.5, column + 1.5, row + 0.5)
        figure.add_shape(frame(*ends, colour=COLOURS["right"], width=3))
    return figure


def with_signs(words: Sequence[str], marked: Sequence[int] = ()) -> list[str]:
    """Return words for an axis, the marked ones with a sign."""
    names = [escape(word, quote=False) for word in words]
    return [f"▸ {name}" if index in marked else name for index, name in enumerate(names)]


def head_rows(heads: Floats, words: Sequence[str], *, marked: Sequence[int] = ()) -> go.Figure:
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
    return cells(
        heads.reshape(-1, n),
        "share",
        (0, float(heads.max(initial=1e-6))),
        trace={"y": rows, "customdata": [with_signs(words)] * len(rows)},
        says=N_("%{y} attends to “%{customdata}”: %{z:.4f}<extra></extra>"),
        height=150 + 26 * len(rows),
        right=44,  # tilted words
        x={
            "title": N_("key: the word read"),
            "side": "top",
            "names": with_signs(words, marked),
            "tickangle": -40,
        },
        y={"title": N_("attention head")},
    )
