"""The known-answer score of every head over the training: when it learns to align."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out, reference_line
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.sentences import N_

_DASHES = ("solid", "dash", "dot", "dashdot")


def score_lines(
    frame: pd.DataFrame,
    *,
    chosen: tuple[str, int],
    at_step: int | None = None,
) -> go.Figure:
    """Draw one line a head; the chosen one thick, in the colour of cross-attention.

    frame: of ``alignment.score_over_training``. chosen: module and head
    from 0. at_step: the snapshot that is being looked at.
    Each trace's ``customdata`` is [module, head from 0] at every point, for clicks.
    """
    figure = go.Figure()
    if not frame.empty:
        ordered = sorted(
            frame.groupby(["module", "head"], sort=False),
            key=lambda group: (group[0][0], group[0][1] - 1) == chosen,  # the chosen one on top
        )
        for (module, head), rows in ordered:
            is_chosen = (module, head - 1) == chosen
            figure.add_trace(_line(str(module), int(head), rows, is_chosen))
        chance = float(frame["chance"].iloc[0])
        reference_line(figure, y=chance, words=N_("uniform attention"))
    if at_step is not None and at_step > 0:
        figure.add_vline(x=at_step, line={"color": GREY, "width": 1})
    return lay_out(
        figure,
        height=340,
        x={"title": N_("step (log)"), "type": "log"},
        y={"title": N_("share of attention on the truth"), "range": [0, 1.04], "tickformat": ".0%"},
        hovermode="closest",
        showlegend=0 < len(figure.data) <= 12,
    )


def _line(module: str, head: int, rows: pd.DataFrame, is_chosen: bool) -> go.Scatter:
    rows = rows[rows["step"] >= 1].sort_values("step")
    layer = int(rows["layer"].iloc[0]) if len(rows) else 0
    name = N_("layer {layer}, head {head}", layer=layer, head=head)
    look: dict[str, Any] = {
        "color": COLOURS["cross"] if is_chosen else GREY,
        "width": 3 if is_chosen else 1.2,
        "dash": _DASHES[(layer - 1) % len(_DASHES)],
    }
    return go.Scatter(
        x=rows["step"].to_numpy(np.float32),
        y=rows["share"].to_numpy(np.float32),
        name=name,
        mode="lines+markers",
        line=look,
        marker={"size": 8 if is_chosen else 4},
        opacity=1 if is_chosen else 0.65,
        legendrank=1 if is_chosen else 2,
        customdata=[[module, head - 1]] * len(rows),
        hovertemplate=N_(
            "step %{{x:,}}: %{{y:.1%}} on the truth<extra>{name}</extra>",
            name=name,
        ),
    )
