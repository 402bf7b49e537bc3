"""Learning curves: thinned without losing a spike, smoothed looking back only.

Training is a thin line under a thick smoothed one; validation is a line with markers, the test a
star at the end. Dashed lines are known before training: chance, the loss of guessing, the floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.plots.chart import Look, chart
from tfm_core.plots.palette import COLOURS
from tfm_core.probe.types import Floats
from tfm_core.runs.curves import Curves
from tfm_core.sentences import N_

MAX_DRAWN = 400


def thin(
    x: Floats, y: Floats, *, max_points: int = MAX_DRAWN, is_log: bool = False
) -> npt.NDArray[np.intp]:
    """Return which points to draw, ascending and at most ``max_points``: the line looks the same.

    x: (n,) ascending, y: (n,). The width is cut into equal parts (equal in log x with ``is_log``),
    and each part keeps its lowest and its highest point; first and last are always kept, so no
    spike is lost, and every point that is drawn was measured.
    """
    n = len(x)
    if n <= max_points:
        return np.arange(n)
    at = np.log(np.maximum(x, 0.5)) if is_log else np.asarray(x, np.float64)
    n_parts = (max_points - 2) // 2
    span = max(float(at[-1] - at[0]), 1e-9)
    part = np.minimum(((at - at[0]) / span * n_parts).astype(np.int64), n_parts - 1)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    order = np.lexsort((np.nan_to_num(y, nan=np.inf), part))  # by part, then by height
    lowest = order[starts]
    order = np.lexsort((np.nan_to_num(y, nan=-np.inf), part))
    highest = order[np.append(starts[1:], n) - 1]
    return np.unique(np.concatenate([[0], lowest, highest, [n - 1]]))


def smooth(y: Floats, window: int) -> npt.NDArray[np.float32]:
    """Return the mean of the last ``window`` values at each index (fewer at the beginning), (n,).

    A NaN (a loss that diverged) is left out of the means; where nothing is left, NaN remains.
    """
    if window <= 1 or not len(y):
        return np.asarray(y, np.float32)
    is_known = np.isfinite(y)
    sums = np.cumsum(np.where(is_known, y, 0.0).astype(np.float64))
    counts = np.cumsum(is_known)
    sums[window:] -= sums[:-window].copy()
    counts[window:] -= counts[:-window].copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0, sums / counts, np.nan).astype(np.float32)


ROLE_COLOURS = {
    "batch": COLOURS["train"],
    "training": COLOURS["train"],
    "validation": COLOURS["validation"],
    "whole": COLOURS["validation"],
    "average": COLOURS["average"],
    "average_whole": COLOURS["average"],
    "test": COLOURS["test"],
    "best": COLOURS["validation"],
}
"""What is drawn of a run, in order: each batch and their running mean, validation and test, those
of whole sequences and of averaged weights, and the best validation."""
WINDOW = 10
"""Batches that the line of training averages, looking back only."""
MAX_POINTS = 200


def curve_points(
    curves: Curves,
    quantity: str,
    *,
    window: int = WINDOW,
    scores_sequences: bool = False,
    is_patient: bool = False,
) -> dict[str, tuple[Floats, Floats]]:
    """Return role → steps and values: of each line 400 points at most, and each spike.

    window: batches that the line of training averages. has_wholes: whether whole sequences are
    measured too. is_patient: the best validation has its own role.
    """
    sources = {"validation": curves.validation, "average": curves.averaged, "test": curves.test}
    sources_of_roles = [(role, series, quantity) for role, series in sources.items()]
    if scores_sequences and quantity == "accuracy":
        wholes = {"whole": curves.validation, "average_whole": curves.averaged}
        sources_of_roles += [(role, series, "sequence_accuracy") for role, series in wholes.items()]
    lines = {
        role: (series["step"], series[column])
        for role, series, column in sources_of_roles
        if column in series.columns
    }
    if quantity in curves.steps.columns:  # whole sequences are not measured of a batch
        steps, values = curves.steps["step"], curves.steps[quantity]
        lines |= {"batch": (steps, values), "training": (steps, smooth(values, window))}
    best = curves.best_validation() if is_patient else None
    if best is not None:
        row = slice(best, best + 1)
        lines["best"] = curves.unseen["step"][row], curves.unseen[quantity][row]
    points: dict[str, tuple[Floats, Floats]] = {}
    for role in ROLE_COLOURS:
        steps, values = lines.get(role, (np.empty(0, np.float32), np.empty(0, np.float32)))
        if (role == "batch" and window <= 1) or not np.isfinite(values).any():
            continue
        is_known = np.isfinite(steps)
        steps, values = steps[is_known], values[is_known]
        if len(steps) > MAX_POINTS:  # dense where steps are even, and where their logarithm is
            indices = [
                thin(steps, values, max_points=MAX_POINTS, is_log=is_log)
                for is_log in (False, True)
            ]
            steps, values = (is_log[np.union1d(*indices)] for is_log in (steps, values))
        points[role] = steps, values
    return points


def curve_lines(
    curves: Curves, *, scores_sequences: bool, is_patient: bool = False
) -> list[dict[str, Any]]:
    """Return what the browser draws of both figures: the values with four digits, None for a gap.

    The arguments are those of ``curve_points``.
    """
    lines = []
    for quantity in ("loss", "accuracy"):
        points = curve_points(
            curves, quantity, scores_sequences=scores_sequences, is_patient=is_patient
        )
        for role, (steps, values) in points.items():
            rounded = [
                float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()
            ]
            line = {"quantity": quantity, "role": role, "colour": ROLE_COLOURS[role]}
            lines.append({**line, "steps": list(map(int, steps)), "values": rounded})
    return lines


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
    line = next((trace for trace in figure.data if trace.name == N_("training")), None)
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
