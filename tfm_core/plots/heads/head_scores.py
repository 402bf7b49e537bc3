"""The known-answer score of every head over the training: when it learns to align."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.attention.alignment import SCORES
from tfm_core.plots.chart import DASHES, Look, chart
from tfm_core.plots.kinds import reference_line
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.sentences import N_


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
    shown = frame[frame["step"] >= 1].sort_values("step")
    looks: dict[str, Look] = {}
    for (module, head), rows in shown.groupby(["module", "head"], sort=False):
        layer, is_chosen = int(rows["layer"].iloc[0]), (module, head - 1) == chosen
        looks[f"{module} {head}"] = {
            "name": N_("layer {layer}, head {head}", layer=layer, head=int(head)),
            "colour": COLOURS["cross"] if is_chosen else GREY,
            "width": 3 if is_chosen else 1.2,
            "dash": DASHES[(layer - 1) % 4],
            "size": 8 if is_chosen else 4,
            "opacity": 1 if is_chosen else 0.65,
            "legendrank": 1 if is_chosen else 2,
            "customdata": [[module, head - 1]] * len(rows),
        }
    on_top = f"{chosen[0]} {chosen[1] + 1}"
    figure = chart(
        SCORES.table(shown.assign(line=shown["module"] + " " + shown["head"].astype(str))),
        x="step",
        y="share",
        colour="line",
        looks=dict(sorted(looks.items(), key=lambda one: one[0] == on_top)),
        top=8,
        marked=len(shown),
        hovermode="closest",
        showlegend=0 < len(looks) <= 12,
    )
    if len(frame):
        chance = float(frame["chance"].iloc[0])
        reference_line(figure, y=chance, words=N_("uniform attention"))
    if at_step is not None and at_step > 0:
        figure.add_vline(x=at_step, line={"color": GREY, "width": 1})
    return figure
