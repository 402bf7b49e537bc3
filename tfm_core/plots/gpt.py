"""Figures of a language model: what may come next, the logit lens, a sum digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.gpt_reading import Digits, Looked
from tfm_core.plots.language import visible
from tfm_core.plots.palette import COLOURS, GREY, ThemeName
from tfm_core.plots.template import sequential

Floats = npt.NDArray[np.floating]
SPECIALS = 4  # the first ids: padding, begin, end, unknown


def shown(token: str) -> str:
    """Return a token for an axis: a space and a line break can be seen, and no markup acts."""
    return "␣" if token == " " else escape(visible(token), quote=False)


def guesses(best: Sequence[tuple[str, float]], truth: str, chance: float, rank: int) -> go.Figure:
    """Bars of the likeliest tokens, the one that came marked, even where it is not among them."""
    rows = [(token, p, token == truth) for token, p in best]
    if not any(is_true for *_, is_true in rows):
        rows.append((truth, chance, True))
    names = [f"{shown(t)}{f' ◀ came, no. {rank}' if came else ''}" for t, _, came in rows]
    figure = go.Figure(
        go.Bar(
            x=np.array([p for _, p, _ in rows], np.float32),
            y=list(range(len(rows))),
            orientation="h",
            marker={"color": [COLOURS["right"] if came else GREY for *_, came in rows]},
            text=[f"{p:.1%}" if p >= 0.001 else "< 0.1%" for _, p, _ in rows],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{customdata}: %{x:.5f}<extra></extra>",
            customdata=names,
        )
    )
    return _bars(figure, names)


def before_and_after(tokens: Sequence[str], before: Floats, after: Floats) -> go.Figure:
    """Bars of the likeliest next tokens, as the model has them and as they are drawn from."""
    figure = go.Figure()
    for name, values, colour, pattern in (
        ("model", before, GREY, "/"),
        ("drawn from", after, COLOURS["decoder"], ""),
    ):
        figure.add_bar(
            x=np.asarray(values, np.float32),
            y=list(range(len(tokens))),
            name=name,
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern}},
            hovertemplate=f"{name}: %{{x:.5f}}<extra></extra>",
        )
    figure.update_layout(barmode="group")
    return _bars(figure, [shown(token) for token in tokens])


def _bars(figure: go.Figure, names: Sequence[str]) -> go.Figure:
    figure.update_layout(height=90 + 28 * len(names), margin={"l": 8, "r": 48, "t": 32})
    figure.update_xaxes(title="probability", rangemode="tozero")
    figure.update_yaxes(
        title="next token",
        autorange="reversed",
        tickvals=list(range(len(names))),
        ticktext=list(names),
    )
    return figure


def lens_map(looked: Looked, theme: ThemeName, *, most: int = 24) -> go.Figure:
    """A row for each depth, the last layer on top; a cell says the likeliest next token there.

    most: tokens that are shown, the first ones.
    """
    lens = looked.lens
    depth, length = len(lens.probability), min(most, lens.probability.shape[1])
    labels = ["embedding", *(f"layer {i}" for i in range(1, depth))]
    hover = [
        [
            f"after {shown(looked.read[t])}, {labels[d]}: {shown(looked.says[d][t])}, "
            f"p = {lens.probability[d, t]:.4f}<br>the model's own answer "
            f"{shown(looked.says[-1][t])} has p = {lens.final[d, t]:.4f} here"
            for t in range(length)
        ]
        for d in range(depth)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(lens.probability[:, :length], np.float32),
            zmin=0,
            zmax=1,
            colorscale=sequential(theme),
            colorbar={"title": {"text": "probability"}},
            text=[[shown(token) for token in row[:length]] for row in looked.says],
            texttemplate="%{text}",
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    figure.update_layout(height=150 + 44 * depth, margin={"l": 8, "r": 8, "t": 24, "b": 8})
    figure.update_xaxes(
        title="token read",
        tickvals=list(range(length)),
        ticktext=[shown(token) for token in looked.read[:length]],
    )
    figure.update_yaxes(title="after", tickvals=list(range(depth)), ticktext=labels)
    return figure


def digit_map(digits: Digits, theme: ThemeName) -> go.Figure:
    """A column for each place of the answer, a row for each digit: the probability of each."""
    rows = [i for i, token in enumerate(digits.vocabulary) if i >= SPECIALS or token == "<eos>"]
    rows = sorted(rows, key=lambda i: (i < SPECIALS, i))
    chances = digits.chances[:, rows].T  # (digits, places)
    names = [digits.vocabulary[i] for i in rows]
    truth = digits.truth or ()
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(chances, np.float32),
            zmin=0,
            zmax=1,
            colorscale=sequential(theme),
            colorbar={"title": {"text": "probability"}},
            text=[[f"{p:.0%}" if p >= 0.005 else "" for p in row] for row in chances],
            texttemplate="%{text}",
            hovertemplate="place %{x}, %{y}: %{z:.5f}<extra></extra>",
            xgap=1,
            ygap=1,
            x=[str(i + 1) for i in range(chances.shape[1])],
            y=[shown(name) for name in names],
        )
    )
    places = [i for i in range(min(len(truth), chances.shape[1]))]
    if places:
        figure.add_scatter(
            x=[str(i + 1) for i in places],
            y=[shown(truth[i]) for i in places],
            mode="markers",
            name="truth",
            marker={"symbol": "square-open", "size": 26, "color": COLOURS["right"],
                    "line": {"width": 3, "color": COLOURS["right"]}},
            hovertemplate="truth at place %{x}: %{y}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(height=480, margin={"l": 8, "r": 8, "t": 40, "b": 8})
    figure.update_xaxes(title="place of the answer, from the left", type="category")
    figure.update_yaxes(title="digit", autorange="reversed", type="category")
    return figure
