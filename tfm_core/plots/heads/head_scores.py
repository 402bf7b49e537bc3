"""The known-answer score of every head over the training: when it learns to align."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.chart import DASHES, chart
from tfm_core.plots.kinds import reference_line
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
    heads = sorted(
        frame.groupby(["module", "head"], sort=False) if len(frame) else (),
        key=lambda group: (group[0][0], group[0][1] - 1) == chosen,  # the chosen one on top
    )
    series, looks = {}, []
    for (module, head), all_rows in heads:
        rows = all_rows[all_rows["step"] >= 1].sort_values("step")
        layer = int(rows["layer"].iloc[0]) if len(rows) else 0
        name = N_("layer {layer}, head {head}", layer=layer, head=int(head))
        is_chosen = (module, head - 1) == chosen
        series[module, head] = (rows["step"], rows["share"])
        line = (
            {"color": COLOURS["cross"], "width": 3} if is_chosen else {"color": GREY, "width": 1.2}
        )
        looks.append(
            {
                "name": name,
                "line": line | {"dash": DASHES[(layer - 1) % 4]},
                "marker": {"size": 8 if is_chosen else 4},
                "opacity": 1 if is_chosen else 0.65,
                "legendrank": 1 if is_chosen else 2,
                "customdata": [[module, head - 1]] * len(rows),
                "hovertemplate": N_(
                    "step %{{x:,}}: %{{y:.1%}} on the truth<extra>{name}</extra>", name=name
                ),
            }
        )
    figure = chart(
        series,
        looks=looks or [{}],
        x={"title": N_("step (log)"), "type": "log"},
        y={"title": N_("share of attention on the truth"), "range": [0, 1.04], "tickformat": ".0%"},
        hovermode="closest",
        showlegend=0 < len(series) <= 12,
    )
    if len(frame):
        chance = float(frame["chance"].iloc[0])
        reference_line(figure, y=chance, words=N_("uniform attention"))
    if at_step is not None and at_step > 0:
        figure.add_vline(x=at_step, line={"color": GREY, "width": 1})
    return figure
