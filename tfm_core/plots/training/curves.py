"""Learning curves: each training batch, their running mean, and unseen examples.

Training is a thin line under a thick smoothed one; validation is a line with markers, the test a
star at the end. Dashed lines are known before training: chance, the loss of guessing, the floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.kinds import reference_line
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.training.stage import smooth, thin
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Values measured at some steps, (n,) each, as one named series of a figure."""

    name: str
    steps: Floats
    values: Floats


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A value known beforehand, drawn as a dashed line with its words.

    is_lower_bound: no curve goes below it, so that its words stand there, clear of the curves.
    """

    value: float
    words: str
    is_lower_bound: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCurves:
    """All series of one quantity. A second one of a split is that of whole sequences.

    averaged: what validation says of averaged weights. best: one point, ringed. turns: steps at
    which a setting was changed, with its new value in words.
    """

    train: Measurements
    validation: Sequence[Measurements] = ()
    test: Sequence[Measurements] = ()
    averaged: Sequence[Measurements] = ()
    best: Measurements | None = None
    turns: Sequence[tuple[int, str]] = ()


def learning_curve(
    measured: MeasuredCurves,
    *,
    y_title: str,
    marks: Sequence[ReferenceLine] = (),
    total_steps: int | None = None,
    window: int = 20,
    is_log: bool = False,
    is_share: bool = False,
) -> go.Figure:
    """Draw one quantity over the steps.

    window: how many batches the thick line averages. is_log: steps on a logarithmic axis.
    is_share: values are 0 to 1 and are shown as per cent.
    """
    number = ":.1%" if is_share else ":.4f"
    lines = _train_lines(measured.train, window, is_log, number)
    for series, look in zip(measured.validation, _VALIDATION, strict=False):
        lines.append(_markers(series, look, COLOURS["validation"], number, is_log))
    for series, look in zip(measured.averaged, _VALIDATION, strict=False):
        if len(series.steps):
            lines.append(_markers(series, look, COLOURS["average"], number, is_log))
    lines += [_points(series, number, _STAR) for series in measured.test if len(series.steps)]
    if measured.best is not None:
        lines.append(_points(measured.best, number, _RING))
    if measured.turns and len(measured.train.steps):
        lines.append(_turns(measured.turns, lines[min(1, window - 1)]))
    figure = go.Figure(lines, _layout(y_title, total_steps, is_log, is_share))
    for mark in marks:
        reference_line(figure, y=mark.value, words=mark.words, is_below=mark.is_lower_bound)
    return figure


_VALIDATION = ({"dash": "solid", "symbol": "circle"}, {"dash": "dash", "symbol": "diamond"})


def _train_lines(train: Measurements, window: int, is_log: bool, number: str) -> list[go.Scatter]:
    steps, values = _float32(train.steps), _float32(train.values)
    smoothed = smooth(values, window)
    lines = []
    if window > 1:
        batch = N_("{measure}, this batch", measure=train.name)
        lines.append(_line(steps, values, is_log, batch, {"width": 1}, number))
        lines[0].update(opacity=0.35, showlegend=False)
    name = train.name
    if window > 1:
        name = N_("{measure}, mean of {n}", measure=train.name, n=window)
    lines.append(_line(steps, smoothed, is_log, name, {"width": 2.5}, number))
    lines[-1].update(name=train.name)
    return [line.update(legendgroup="train") for line in lines]


def _line(
    steps: Floats, values: Floats, is_log: bool, name: str, line: dict[str, Any], number: str
) -> go.Scatter:
    """Return a line that is thinned; where the axis is logarithmic, step 0 has no place on it."""
    shown = steps >= 1 if is_log else slice(None)
    steps, values = steps[shown], values[shown]
    kept = thin(steps, values, is_log=is_log)
    return go.Scatter(
        x=steps[kept],
        y=values[kept],
        name=name,
        mode="lines",
        line={"color": COLOURS["train"], **line},
        hovertemplate=_hover(name, number),
    )


def _markers(
    series: Measurements, look: dict[str, str], colour: str, number: str, is_log: bool
) -> go.Scatter:
    steps, values = _float32(series.steps), _float32(series.values)
    line = {"color": colour, "width": 2, "dash": look["dash"]}
    drawn = _line(steps, values, is_log, series.name, line, number)
    return drawn.update(mode="lines+markers", marker={"symbol": look["symbol"], "size": 7})


def _turns(turns: Sequence[tuple[int, str]], line: go.Scatter) -> go.Scatter:
    """Return a mark on a line at each step where a setting was changed."""
    steps = [step for step, _words in turns]
    return go.Scatter(
        x=steps,
        y=np.interp(steps, line.x, line.y),
        name=N_("setting changed"),
        mode="markers",
        marker={"color": COLOURS["train"], "symbol": "diamond-tall", "size": 12},
        text=[words for _step, words in turns],
        hovertemplate=N_("step %{{x:,}}: %{{text}}<extra></extra>"),
    )


def _points(series: Measurements, number: str, marker: dict[str, Any]) -> go.Scatter:
    return go.Scatter(
        x=_float32(series.steps),
        y=_float32(series.values),
        name=series.name,
        mode="markers",
        marker=marker,
        cliponaxis=False,
        hovertemplate=_hover(series.name, number),
    )


_STAR = {"color": COLOURS["test"], "symbol": "star", "size": 15}
_RING = {
    "color": COLOURS["validation"],
    "symbol": "circle-open",
    "size": 17,
    "line": {"width": 2.5},
}


def _hover(name: str, number: str) -> str:
    return N_("step %{{x:,}}: %{{y{number}}}<extra>{name}</extra>", number=number, name=name)


def _layout(y_title: str, total_steps: int | None, is_log: bool, is_share: bool) -> dict[str, Any]:
    """Return the layout, as one: plotly takes milliseconds for each update of a figure."""
    across: dict[str, Any] = {"title": {"text": N_("step (log)") if is_log else N_("step")}}
    if is_log:
        top = np.log10(max(total_steps or 1, 2))
        across |= {"type": "log", "range": [0, float(top) + 0.02], "dtick": 1}
    elif total_steps:
        across |= {"range": [0, total_steps * 1.02]}
    up: dict[str, Any] = {"title": {"text": y_title}, "rangemode": "tozero"}
    if is_share:
        up |= {"range": [0, 1.04], "tickformat": ".0%"}
    return {
        "height": 340,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "hovermode": "closest",
        "legend": {"font": {"size": 12}},
        "xaxis": across,
        "yaxis": up,
    }


def _float32(values: Floats) -> npt.NDArray[np.float32]:
    return np.asarray(values, np.float32)
