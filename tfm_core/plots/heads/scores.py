"""Heads scored: how they learn to align, what is left without them, and what each restores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from pandas import DataFrame

from tfm_core.inspect.attention.alignment import SCORES
from tfm_core.inspect.knockouts.measure import PRUNED
from tfm_core.plots.chart import DASHES, Look, cells, chart
from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import HOLES, reference_line
from tfm_core.plots.palette import COLOURS, GREY, VERMILION
from tfm_core.sentences import N_

_MAX_WRITTEN = 16  # columns whose cells carry their number


def score_lines(
    frame: DataFrame,
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


def pruning_curve(curves: DataFrame, measure: str = "accuracy") -> go.Figure:
    """Draw the ordered curve, and random orders as their mean and range.

    curves: the table of ``pruned``. measure: "accuracy", as a share, or "loss", in nats.
    """
    orders = curves.groupby("order").ngroups
    by_count = curves[curves["order"] > 0].groupby("removed")[measure]
    spread = by_count.agg(["mean", "min", "max"]).reset_index()
    ordered = chart(
        PRUNED.table(curves[curves["order"] == 0]),
        x="removed",
        y=measure,
        looks=[{"name": N_("least important first"), "colour": VERMILION, "width": 2.5, "size": 6}],
        across={"range": [-0.3, curves["removed"].max() + 0.3]},
        height=330,
        top=36,
    )
    if spread.empty:
        return ordered
    random = chart(
        PRUNED.table(spread.rename(columns={"mean": measure})),
        "bands",
        x="removed",
        y=measure,
        ends=("min", "max"),
        looks=[{"name": N_("random order, mean"), "colour": GREY, "dash": "dash", "width": 2.5}],
        marked=0,
    )
    random.data[1].update(name=N_("range of {n} random orders", n=orders - 1), showlegend=True)
    return go.Figure([*random.data, *ordered.data], ordered.layout)


def restored_map(
    shares: npt.NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    column_title: str,
) -> go.Figure:
    """Draw what each patch restores, (rows, columns): 0 for nothing, 1 for the whole answer."""
    top = max(1.0, float(np.abs(shares).max(initial=0.0)))
    names = [short(name) for name in columns]
    says = [
        [f"{row}, {name}: {share:.5f}" for name, share in zip(names, line, strict=True)]
        for row, line in zip(rows, shares.tolist(), strict=True)
    ]
    return cells(
        shares,
        "signed",
        (-top, top),
        says=says,
        texts="%{z:.2f}" if len(names) <= _MAX_WRITTEN else "",
        legend="",
        height=140 + 26 * len(rows),
        top=44,
        x={"title": column_title, "names": names, "tickangle": -45},
        y={"names": rows},
        plot_bgcolor=HOLES,
    )
