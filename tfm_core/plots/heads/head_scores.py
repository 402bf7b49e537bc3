"""The known-answer score of every head over the training: when it learns to align."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.kinds import lay_out, reference_line
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.sentences import N_

MEASURES: dict[str, tuple[str, str]] = {  # column -> title of the axis, words for hover
    "share": (N_("share of attention on the truth"), N_("on the truth")),
    "aer": (N_("alignment error rate"), N_("alignment error rate")),
}
_DASHES = ("solid", "dash", "dot", "dashdot")


def score_lines(
    frame: pd.DataFrame,
    measure: str = "share",
    *,
    chosen: tuple[str, int] | None = None,
    at_step: int | None = None,
    is_log: bool = True,
) -> go.Figure:
    """Draw one line a head; the chosen one thick, in the colour of cross-attention.

    frame: of ``alignment.score_over_training``. measure: "share" or "aer". chosen: module and head
    from 0; None takes the best at the end. at_step: the snapshot that is being looked at.
    Each trace's ``customdata`` is [module, head from 0] at every point, for clicks.
    """
    figure = go.Figure()
    if not frame.empty:
        chosen = best_of(frame, measure) if chosen is None else chosen
        ordered = sorted(
            frame.groupby(["module", "head"], sort=False),
            key=lambda group: (group[0][0], group[0][1] - 1) == chosen,  # the chosen one on top
        )
        for (module, head), rows in ordered:
            is_chosen = (module, head - 1) == chosen
            figure.add_trace(_line(str(module), int(head), rows, measure, is_chosen, is_log))
        if measure == "share":
            chance = float(frame["chance"].iloc[0])
            reference_line(figure, y=chance, words=N_("uniform attention"))
    if at_step is not None and (at_step > 0 or not is_log):
        figure.add_vline(x=at_step, line={"color": GREY, "width": 1})
    return lay_out(
        figure,
        height=340,
        x={"title": N_("step (log)"), "type": "log"} if is_log else {"title": N_("step")},
        y={"title": MEASURES[measure][0], "range": [0, 1.04], "tickformat": ".0%"},
        hovermode="closest",
        showlegend=0 < len(figure.data) <= 12,
    )


def best_of(frame: pd.DataFrame, measure: str) -> tuple[str, int]:
    """Return module and head (from 0) of the best line at the last step."""
    last = frame[frame["step"] == frame["step"].max()]
    row = last.loc[last[measure].idxmin() if measure == "aer" else last[measure].idxmax()]
    return str(row["module"]), int(row["head"]) - 1


def _line(
    module: str, head: int, rows: pd.DataFrame, measure: str, is_chosen: bool, is_log: bool
) -> go.Scatter:
    rows = rows.sort_values("step")
    rows = rows[rows["step"] >= 1] if is_log else rows
    layer = int(rows["layer"].iloc[0]) if len(rows) else 0
    name = N_("layer {layer}, head {head}", layer=layer, head=head)
    look: dict[str, Any] = {
        "color": COLOURS["cross"] if is_chosen else GREY,
        "width": 3 if is_chosen else 1.2,
        "dash": _DASHES[(layer - 1) % len(_DASHES)],
    }
    return go.Scatter(
        x=rows["step"].to_numpy(np.float32),
        y=rows[measure].to_numpy(np.float32),
        name=name,
        mode="lines+markers",
        line=look,
        marker={"size": 8 if is_chosen else 4},
        opacity=1 if is_chosen else 0.65,
        legendrank=1 if is_chosen else 2,
        customdata=[[module, head - 1]] * len(rows),
        hovertemplate=N_(
            "step %{{x:,}}: %{{y:.1%}} {measures}<extra>{name}</extra>",
            measures=MEASURES[measure][1],
            name=name,
        ),
    )
