"""Sets of one's own as figures: how many examples each class has, and how long texts are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import COLOURS
from tfm_core.plots.positions import axes
from tfm_core.sentences import N_

PARTS = ("train", "validation", "test")
_NAMES = {"train": N_("to learn from"), "validation": N_("validation"), "test": N_("test")}
_PATTERNS = {"train": "", "validation": "/", "test": "x"}
_MOST_BARS = 60


def balance(names: Sequence[str], table: npt.NDArray[np.int64]) -> go.Figure:
    """Draw the examples of each class in each split, (classes, splits), one bar on the other.

    Of very many classes the largest are drawn.
    """
    order = np.arange(len(names))
    if len(names) > _MOST_BARS:
        order = np.sort(table.sum(1).argsort(kind="stable")[::-1][:_MOST_BARS])
    shown = [escape(names[at]) for at in order]
    figure = go.Figure(
        [
            go.Bar(
                x=shown,
                y=table[order, at],
                name=f"{_NAMES[part]}: {int(table[:, at].sum()):,}",
                marker={"color": COLOURS[part], "pattern": {"shape": _PATTERNS[part]}},
                hovertemplate=N_("%{{x}}: %{{y:,}}<extra>{part}</extra>", part=_NAMES[part]),
            )
            for at, part in enumerate(PARTS)
            if table[:, at].any()
        ]
    )
    axes(figure, N_("class"), N_("examples"))
    figure.update_xaxes(type="category")
    return figure.update_layout(barmode="stack", height=240)
