"""Good practice as figures: splits, confusions, accuracy by class, what was promised and came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.inspect.practice.intervals import wilson
from tfm_core.inspect.practice.lesson import SPLITS, Splits
from tfm_core.plots.attention import Theme
from tfm_core.plots.palette import CARDS, COLOURS, INKS
from tfm_core.plots.positions import MARGIN, axes
from tfm_core.sentences import N_

_PATTERNS = {"train": "", "validation": "/", "test": "x"}
_ERRORS: dict[Theme, tuple[str, str]] = {
    "light": ("#fbe3d0", "#d55e00"),
    "dark": ("#4a2a12", "#e8762a"),
}


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
    counts = evaluation.confusion()
    names = list(evaluation.class_names)
    errors = counts.astype(np.float32)
    np.fill_diagonal(errors, np.nan)
    errors[errors == 0] = np.nan
    pale, strong = _ERRORS[theme]
    figure = go.Figure(
        go.Heatmap(
            z=errors,
            x=names,
            y=names,
            zmin=0,
            zmax=max(3.0, float(np.nanmax(errors)) if np.isfinite(errors).any() else 3.0),
            colorscale=[[0, pale], [1, strong]],
            showscale=False,
            xgap=1,
            ygap=1,
            text=[[str(n) if n else "" for n in row] for row in counts.tolist()],
            texttemplate="%{text}",
            textfont={"color": INKS[theme]},
            hovertext=[
                [f"truly {a}, said {b}: {n:,}" for b, n in zip(names, row, strict=True)]
                for a, row in zip(names, counts.tolist(), strict=True)
            ],
            hoverinfo="text",
            hoverongaps=True,
        )
    )
    figure.update_xaxes(title={"text": N_("said (across)")}, type="category", showgrid=False)
    figure.update_yaxes(
        title={"text": N_("truth (down)")}, type="category", autorange="reversed", showgrid=False
    )
    return figure.update_layout(height=400, margin=MARGIN, plot_bgcolor=CARDS[theme])


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
            error_y={
                "type": "data",
                "symmetric": False,
                "array": ends[:, 1] - share,
                "arrayminus": share - ends[:, 0],
                "thickness": 1.5,
            },
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
