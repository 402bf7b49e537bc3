"""Learning curves: each training batch, their running mean, and unseen examples.

Training is a thin line under a thick smoothed one; validation is a line with markers, the test a
star at the end. Dashed lines are known before training: chance, the loss of guessing, the floor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.plots.chart import Look, chart
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.training.stage import ROLE_COLOURS, curve_points
from tfm_core.runs.curves import Curves
from tfm_core.sentences import N_

CURVES = Columns(
    step=Column(N_("step"), ","),
    loss=Column(N_("loss (nats)"), ".4f", {"rangemode": "tozero"}),
    accuracy=share(N_("accuracy"), rangemode="tozero"),
    sequence_accuracy=share(N_("sequence accuracy"), rangemode="tozero"),
)
_LOOKS: dict[str, Look] = {
    "batch": {
        "name": N_("training, this batch"),
        "mode": "lines",
        "width": 1,
        "opacity": 0.35,
        "showlegend": False,
        "legendgroup": "train",
    },
    "training": {"name": N_("training"), "mode": "lines", "width": 2.5, "legendgroup": "train"},
    "validation": {"name": N_("validation"), "symbol": "circle"},
    "whole": {"name": N_("whole sequences"), "dash": "dash", "symbol": "diamond"},
    "average": {"name": N_("averaged weights"), "symbol": "circle"},
    "average_whole": {
        "name": N_("averaged weights, whole sequences"),
        "dash": "dash",
        "symbol": "diamond",
    },
    "test": {
        "name": N_("test"),
        "mode": "markers",
        "symbol": "star",
        "size": 15,
        "cliponaxis": False,
    },
    "best": {
        "mode": "markers",
        "symbol": "circle-open",
        "size": 17,
        "marker": {"line": {"width": 2.5}},
        "cliponaxis": False,
    },
}


def learning_curve(
    curves: Curves,
    quantity: str,
    *,
    title: str = "",
    total_steps: int | None = None,
    window: int = 20,
    is_log: bool = False,
    scores_sequences: bool = False,
    is_patient: bool = False,
) -> go.Figure:
    """Draw one quantity over the steps.

    title: of it, where it is none of CURVES or its unit is another. window: how many batches the
    thick line averages. is_log: steps on a logarithmic axis. scores_sequences: whole sequences are
    measured, too. is_patient: ring the best validation.
    """
    points = curve_points(
        curves, quantity, window=window, scores_sequences=scores_sequences, is_patient=is_patient
    )
    roles = np.repeat([*points], [len(steps) for steps, _values in points.values()])
    steps, values = (
        np.concatenate([[], *(line[side] for line in points.values())]) for side in (0, 1)
    )
    table = CURVES.table({"role": roles, "step": steps, quantity: values})
    across: dict[str, object] = {"range": [0, total_steps * 1.02]} if total_steps else {}
    if is_log:
        table = table[table["step"] >= 1]
        end = float(np.log10(max(total_steps or 1, 2))) + 0.02
        across = {"title": N_("step (log)"), "type": "log", "range": [0, end], "dtick": 1}
    looks = {}
    for role, look in _LOOKS.items():
        looks[role] = {"colour": ROLE_COLOURS[role], "mode": "lines+markers", "size": 7}
        looks[role] |= look
    best = table[table["role"] == "best"]["step"]
    if len(best):
        looks["best"]["name"] = N_("best: step {n}", n=f"{int(best.iloc[0]):,}")
    return chart(
        table,
        x="step",
        y=quantity,
        colour="role",
        looks=looks,
        labels={quantity: title} if title else {},
        across=across,
        top=8,
        hovermode="closest",
    )


def mark_turns(figure: go.Figure, turns: Sequence[tuple[int, str]]) -> None:
    """Mark the steps at which a setting was changed, with its new value, on the running mean."""
    line = next((one for one in figure.data if one.name == N_("training")), None)
    if not turns or line is None:
        return
    steps = [step for step, _words in turns]
    figure.add_scatter(
        x=steps,
        y=np.interp(steps, line.x, line.y),
        name=N_("setting changed"),
        mode="markers",
        marker={"color": COLOURS["train"], "symbol": "diamond-tall", "size": 12},
        text=[words for _step, words in turns],
        hovertemplate=N_("step %{{x:,}}: %{{text}}<extra></extra>"),
    )
