"""A sweep in figures: Optuna's own, of its trials, in the words and the look of the app."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import chart
from tfm_core.plots.described import scatter
from tfm_core.plots.palette import BLUE, VERMILION
from tfm_core.sentences import N_
from tfm_core.sweeps import space as spaces
from tfm_core.sweeps.objectives import Objective
from tfm_core.sweeps.plan import Plan
from tfm_core.sweeps.space import Choices, Dimension, Range, Value
from tfm_core.sweeps.study import Trial, optuna_study

if TYPE_CHECKING:
    import optuna

ENOUGH = 4
"""Completed trials needed to rank the settings by importance."""
_ENOUGH_BETWEEN = 8  # completed trials needed to draw what lies between them
MIN_FINISHED = 2
"""Finished trials that each tried value of a setting needs before its importance is shown."""

_SCALE = [(0.0, "#c79a4b"), (0.5, "#8aa89b"), (1.0, "#0f7f8f")]
"""From the worst figure to the best; told apart with any common colour blindness."""
_FAR = 30.0  # times the lowest loss that the highest is
_MARGIN = {"l": 56, "r": 16, "t": 12, "b": 48}


TRIALS = Columns(
    trial=Column(N_("trial"), axis={"tickformat": "d"}),
    value=Column(form=".4~g"),
    setting=Column(axis={"type": "category"}),
    importance=Column(N_("importance"), ".4f"),
)


def points(plan: Plan, most: int = 400) -> go.Figure:
    """Draw the points of a plan's grid on its first two settings; one alone stands on a line."""
    label = [spaces.label_of(plan.base, one.path) for one in plan.space]
    paths = [one.path for one in plan.space]
    grid = [point for point, _n in zip(spaces.grid(plan.space), range(most), strict=False)]
    x = [_coordinate(point[paths[0]]) for point in grid]
    y = [_coordinate(point[paths[1]]) if len(paths) > 1 else "" for point in grid]
    name = label[1] if len(paths) > 1 else N_("Values")
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=y,
            mode="markers",
            meta=scatter(name, x, y) if grid else None,
            marker={"symbol": "circle-open", "size": 14, "color": BLUE, "line": {"width": 2}},
            hovertext=[spaces.words(plan.base, point) for point in grid],
            hoverinfo="text",
        )
    )
    _axis(figure.update_xaxes, plan, 0, label)
    if len(paths) > 1:
        _axis(figure.update_yaxes, plan, 1, label)
    figure.update_layout(height=300, margin=_MARGIN, showlegend=False)
    return figure


def figures(plan: Plan, trials: Sequence[Trial]) -> dict[str, go.Figure]:
    """Return Optuna's figures of the trials, by name; those that can't be drawn yet are left out.

    history, importance, contour, slice. Trials that lie outside the plan's
    space, as it is now, are in the history alone.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study, n_over = optuna_study(plan, trials, _names(plan)), n_finished(plan, trials)
    found: dict[str, go.Figure] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if any(map(_is_measured, trials)):
            found["history"] = _history(trials, plan.looks_for)
        if n_over >= 2:
            found["slice"] = _slices(study, plan)
        if n_over >= ENOUGH:
            weighed = _weighed(plan, trials)
            if weighed:
                found["importance"] = _importance(study, weighed)
            if len(plan.space) > 1 and n_over >= _ENOUGH_BETWEEN:
                found["contour"] = _contour(study, plan, _foremost(study, weighed))
    return found


def _scored(plan: Plan, trials: Sequence[Trial]) -> list[tuple[Trial, dict[str, Value], float]]:
    """Return the finished trials in the plan's space, with their values by label."""
    names, found = _names(plan), []
    for trial in trials:
        values = spaces.point_in(plan.base, plan.space, trial.values)
        if values is not None and trial.value is not None and trial.state == "complete":
            found.append((trial, {names[path]: one for path, one in values.items()}, trial.value))
    return found


def n_finished(plan: Plan, trials: Sequence[Trial]) -> int:
    """Return how many trials the figures show."""
    return len(_scored(plan, trials))


def thin_values(plan: Plan, trials: Sequence[Trial]) -> list[tuple[str, Value, int]]:
    """Return setting, value and number of finished trials of each value with too few of them.

    Of values to choose from, those that have some finished trials, but fewer than
    ``MIN_FINISHED``: nothing follows from these about the setting.
    """
    names, scored, found = _names(plan), _scored(plan, trials), []
    for one in plan.space:
        if not isinstance(one, Choices):
            continue
        name = names[one.path]
        for value in one.values:
            n = sum(values[name] == value for _, values, _ in scored)
            if 0 < n < MIN_FINISHED:
                found.append((name, value, n))
    return found


def _weighed(plan: Plan, trials: Sequence[Trial]) -> list[str]:
    """Return the settings whose importance the finished trials support; none if only one of many.

    Shares of one setting beside nothing say nothing.
    """
    thin = {name for name, _value, _n in thin_values(plan, trials)}
    kept = [name for name in _names(plan).values() if name not in thin]
    return kept if len(kept) > 1 or len(plan.space) == len(kept) else []


def _slices(study: optuna.Study, plan: Plan) -> go.Figure:
    """Draw the result over each setting's range."""
    from optuna import visualization

    figure = visualization.plot_slice(study, target_name=plan.looks_for.label)
    figure.update_layout(title=None, template=None, height=300, margin=_MARGIN)
    for trace in figure.data:
        trace.meta = scatter(trace.name or plan.looks_for.label, trace.x, trace.y)
    figure.update_traces(marker={"color": BLUE, "showscale": False, "size": 8})
    if _is_far([value for trace in figure.data for value in trace.y], plan.looks_for):
        figure.update_yaxes(type="log")
    names = _names(plan)
    by_name = {names[one.path]: one for one in plan.space}
    for number, name in enumerate(sorted(by_name), start=1):
        suffix = "" if number == 1 else str(number)
        axis, one = figure.layout[f"xaxis{suffix}"], by_name[name]
        _search_range(axis, one)
        if axis.type == "category":
            axis.update(categoryarray=[repr(value) for value in one.grid()])
    return figure


def _search_range(axis: Any, one: Dimension) -> None:
    """Set an axis to the searched range and a margin."""
    if not isinstance(one, Range):
        return
    low, high = (math.log10(one.low), math.log10(one.high)) if one.is_log else (one.low, one.high)
    room = 0.05 * (high - low)
    axis.update(range=[low - room, high + room])


def _contour(study: optuna.Study, plan: Plan, foremost: list[str]) -> go.Figure:
    """Draw the result over two settings' ranges, interpolated."""
    from optuna import visualization

    figure = visualization.plot_contour(study, params=foremost, target_name=plan.looks_for.label)
    figure.update_layout(title=None, template=None, height=300, margin=_MARGIN)
    bar = {"title": {"text": None}, "thickness": 12, "outlinewidth": 0}
    figure.update_traces(colorscale=_SCALE, colorbar=bar, selector={"type": "contour"})
    figure.update_traces(marker={"size": 7}, selector={"type": "scatter"})
    for trace in figure.data:
        trace.meta = scatter(trace.name or figure.layout.yaxis.title.text, trace.x, trace.y)
    by_name = {_names(plan)[one.path]: one for one in plan.space}
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        _search_range(axis, by_name[axis.title.text])
    return figure


def _history(trials: Sequence[Trial], looks_for: Objective) -> go.Figure:
    """Draw what each trial came to, and the best so far, by the app's numbers."""
    values = {n: one.value for n, one in enumerate(trials) if _is_measured(one)}
    found = pd.Series(values, dtype=float)
    best = found.cummax() if looks_for.is_maximized else found.cummin()
    return chart(
        TRIALS.table({"trial": found.index, "value": found, "best": best}),
        x="trial",
        y={"value": looks_for.label, "best": N_("best so far")},
        looks=[
            {"colour": BLUE, "mode": "markers", "size": 8},
            {"colour": VERMILION, "mode": "lines", "shape": "hv"},
        ],
        across={"dtick": 1 if len(found) <= 12 else None},
        up={"title": looks_for.label, "type": "log" if _is_far(list(found), looks_for) else None},
        height=300,
    )


def _importance(study: optuna.Study, weighed: list[str]) -> go.Figure:
    """Draw how much of the result's spread each setting explains, as Optuna finds it."""
    import optuna

    found = optuna.importance.get_param_importances(study, params=weighed)
    words = [f"{share:.2f}" if share >= 0.01 else "<0.01" for share in found.values()]
    return chart(
        TRIALS.table({"setting": [*found], "importance": found.values(), "words": words}),
        "bars",
        x="importance",
        y="setting",
        orientation="h",
        text="words",
        height=300,
    )


def _names(plan: Plan) -> dict[str, str]:
    """Return a name of each setting that no other has."""
    labels = {one.path: str(spaces.label_of(plan.base, one.path)) for one in plan.space}
    twice = [label for label in labels.values() if list(labels.values()).count(label) > 1]
    return {
        path: f"{label} ({path})" if label in twice else label for path, label in labels.items()
    }


def _foremost(study: optuna.Study, weighed: list[str]) -> list[str]:
    """Return the two settings that mattered most, of those that could be weighed; then others."""
    import optuna

    known = list(optuna.importance.get_param_importances(study, params=weighed)) if weighed else []
    others = [name for name in study.get_trials(deepcopy=False)[0].params if name not in known]
    return [*known, *others][:2]


def _is_measured(trial: Trial) -> bool:
    return trial.state == "complete" and trial.value is not None


def _is_far(values: Sequence[float], looks_for: Objective) -> bool:
    """Return whether figures are losses of several orders of magnitude."""
    is_loss = not looks_for.is_maximized and bool(values) and min(values) > 0
    return is_loss and max(values) > _FAR * min(values)


def _coordinate(value: Value) -> Value:
    return spaces.shown(value) if isinstance(value, bool | str) else value


def _axis(update: Any, plan: Plan, number: int, labels: Sequence[str]) -> None:
    one = plan.space[number]
    values = one.grid()
    is_log = isinstance(one, Range) and one.is_log
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    update(title=labels[number])
    if is_log:
        update(type="log")
    if numbers and len(values) <= 12:
        update(tickmode="array", tickvals=list(values), ticktext=[spaces.shown(v) for v in values])
    elif not numbers:
        update(type="category")
