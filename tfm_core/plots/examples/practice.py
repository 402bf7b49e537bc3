"""Good practice as figures: splits, confusions, accuracy by class, validation against test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.compare.conclusions import wilson
from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.plots.examples import errors
from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.kinds import error_bars, lay_out
from tfm_core.plots.palette import COLOURS
from tfm_core.sentences import N_, Paragraph


def confusion(evaluation: Evaluation, theme: Theme = "light") -> go.Figure:
    """Draw the true class down and the predicted class across; only errors have colour."""
    return errors.confusion(evaluation.confusion(), evaluation.class_names, theme)


def by_class(evaluation: Evaluation) -> go.Figure:
    """Draw the accuracy of each class with its 95% interval."""
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
            hovertemplate=Paragraph("figures/digit"),
        )
    )
    x = {"title": N_("class"), "type": "category"}
    y = {"title": N_("pictures right"), "tickformat": ".0%"}
    return lay_out(figure, height=400, top=36, x=x, y=y)


def promises(rows: Sequence[tuple[str, str, int, int]]) -> go.Figure:
    """Draw accuracies with 95% intervals: label, the split it is of, right answers, pictures."""
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
            error_x=error_bars([high - share], [share - low], thickness=2),
            showlegend=False,
            hovertemplate=Paragraph(
                "figures/interval", label=label, right=right, n=n, low=low, high=high
            ),
        )
    x = {"title": N_("pictures right"), "tickformat": ".0%"}
    y = {"range": [len(rows) - 0.4, -0.6], "type": "category"}
    return lay_out(figure, height=110 + 56 * len(rows), x=x, y=y)
