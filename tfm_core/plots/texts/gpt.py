"""Figures of a language model: what may come next, the logit lens, a sum digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.text.gpt_writing import NEXT
from tfm_core.plots.chart import cells, chart
from tfm_core.plots.kinds import frame, legend_to
from tfm_core.plots.palette import COLOURS, GREY, SCALES, ThemeName
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
    theme: ThemeName,
    *,
    most: int = 24,
) -> go.Figure:
    """Draw the likeliest next token for each token read (down) at each depth (across).

    read, says, probability, final: of ``look_through``. most: how many tokens to show, the first
    ones.
    """
    depth, length = len(probability), min(most, probability.shape[1])
    labels = [N_("embedding"), *(N_("layer {n}", n=i) for i in range(1, depth))]
    hover = [
        [
            N_(
                "after {token}, {depth}: {says}, p = {p:.4f}<br>"
                "the model’s own answer {answer} has p = {final:.4f} here",
                token=shown(read[t]),
                depth=labels[d],
                says=shown(says[d][t]),
                p=float(probability[d, t]),
                answer=shown(says[-1][t]),
                final=float(final[d, t]),
            )
            for d in range(depth)
        ]
        for t in range(length)
    ]
    return cells(
        probability[:, :length].T,
        SCALES[theme],
        (0, 1),
        says=hover,
        texts=[[shown(says[d][t]) for d in range(depth)] for t in range(length)],
        trace={"colorbar": _LEGEND, "showscale": True},
        height=150 + 28 * length,
        top=64,
        x={"title": N_("answer after"), "names": labels},
        y={"title": N_("token read"), "names": [shown(token) for token in read[:length]]},
    )


def digit_map(truth: Sequence[str], table: pd.DataFrame, theme: ThemeName) -> go.Figure:
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
        SCALES[theme],
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
