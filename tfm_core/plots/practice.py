"""Good practice as figures: splits, confusions, accuracy by class, what was promised and came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.compare.conclusions import wilson
from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.inspect.practice.lesson import SPLITS, Splits
from tfm_core.plots import errors
from tfm_core.plots.attention import Theme
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.positions import MARGIN, axes
from tfm_core.sentences import N_

_PATTERNS = {"train": "", "validation": "/", "test": "x"}


def shares(splits: Splits) -> go.Figure:
    """Draw how many pictures of each class stand in each split, one bar on the other."""
    figure = go.Figure(
        [
            go.Bar(
                x=list(splits.class_names),
                y=splits.counts[i],
                name=f"{name}: {splits.totals[name]:,}",
                marker={"color": COLOURS[name], "pattern": {"shape": _PATTERNS[name]}},
                hovertemplate=N_("digit %{{x}}: %{{y:,}} pictures<extra>{name}</extra>", name=name),
            )
            for i, name in enumerate(SPLITS)
        ]
    )
    axes(figure, N_("class"), N_("pictures"))
    figure.update_xaxes(type="category")
    return figure.update_layout(barmode="stack", height=320)


def confusion(evaluation: Evaluation, theme: Theme = "light") -> go.Figure:
    """Draw the true class down and the said class across; only errors have colour."""
    return errors.confusion(evaluation.confusion(), evaluation.class_names, theme)


def by_class(evaluation: Evaluation) -> go.Figure:
    """Draw the accuracy of each class with its 95 % interval."""
    counts = evaluation.confusion()
    right, n = counts.diagonal(), counts.sum(1)
    share = right / np.maximum(n, 1)
    ends = np.array(
        [wilson(int(r), int(m)) if m else (0, 1) for r, m in zip(right, n, strict=True)]
    )
    figure = go.Figure(
        go.Scatter(
            x=list(evaluation.class_names),
            y=share,
            mode="markers",
            marker={"color": COLOURS["validation"], "size": 10},
            error_y=errors.between(share, ends),
            customdata=np.stack([right, n, *ends.T], 1),
            hovertemplate=N_(
                "digit %{x}: %{customdata[0]} of %{customdata[1]} right, %{y:.1%}<br>95 % "
                "interval %{customdata[2]:.1%} to %{customdata[3]:.1%}<extra></extra>",
            ),
        )
    )
    axes(figure, N_("class"), N_("pictures right"))
    figure.update_xaxes(type="category")
    figure.update_yaxes(tickformat=".0%")
    return figure.update_layout(height=400)


def promises(rows: Sequence[tuple[str, str, int, int]]) -> go.Figure:
    """Draw accuracies with 95 % intervals: label, the split it is of, right answers, pictures."""
    figure = go.Figure()
    symbols = {"train": "square", "validation": "circle", "test": "star"}
    for label, split, right, n in rows:
        low, high = wilson(right, n)
        share = right / n
        figure.add_scatter(
            x=[share],
            y=[label],
            mode="markers",
            marker={"color": COLOURS[split], "size": 13, "symbol": symbols[split]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - share],
                "arrayminus": [share - low],
                "thickness": 2,
            },
            showlegend=False,
            hovertemplate=N_(
                "{label}: {right:,} of {n:,}, %{{x:.1%}}<br>95 % interval {low:.1%} to "
                "{high:.1%}<extra></extra>",
                label=label,
                right=right,
                n=n,
                low=low,
                high=high,
            ),
        )
    axes(figure, N_("pictures right"), "")
    figure.update_xaxes(tickformat=".0%")
    figure.update_yaxes(range=[len(rows) - 0.4, -0.6], type="category")
    return figure.update_layout(height=110 + 56 * len(rows), margin={**MARGIN, "t": 8})
