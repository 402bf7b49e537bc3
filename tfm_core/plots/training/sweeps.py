"""A sweep in figures: Optuna's own, of its trials, in the words and the look of the app."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

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


def points(plan: Plan, most: int = 400) -> go.Figure:
    """Draw the points of a plan's grid on its first two settings; one alone stands on a line."""
    label = [spaces.label_of(plan.base, one.path) for one in plan.space]
    paths = [one.path for one in plan.space]
    grid = [point for point, _n in zip(spaces.grid(plan.space), range(most), strict=False)]
    figure = go.Figure(
        go.Scatter(
            x=[_coordinate(point[paths[0]]) for point in grid],
            y=[_coordinate(point[paths[1]]) if len(paths) > 1 else "" for point in grid],
            mode="markers",
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
    from optuna import visualization

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study, n_over = optuna_study(plan, trials, _names(plan)), n_finished(plan, trials)
    measured = [trial for trial in trials if trial.value is not None and trial.state == "complete"]
    found: dict[str, go.Figure] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if measured:
            found["history"] = history(plan, trials)
        if n_over >= 2:
            found["slice"] = _slices(study, plan)
        if n_over >= ENOUGH:
            weighed = _weighed(plan, trials)
            if weighed:
                found["importance"] = visualization.plot_param_importances(study, params=weighed)
            if len(plan.space) > 1 and n_over >= _ENOUGH_BETWEEN:
                found["contour"] = visualization.plot_contour(
                    study, params=_foremost(study, weighed), target_name=plan.looks_for.label
                )
    for name, figure in found.items():
        _dress(name, figure, plan.looks_for)
    if "contour" in found:
        _span_what_is_searched(found["contour"], plan)
    return found


def _scored(plan: Plan, trials: Sequence[Trial]) -> list[tuple[Trial, dict[str, Value], float]]:
    """Return the finished trials in the plan's space, with their values by label."""
    names, found = _names(plan), []
    for trial in trials:
        values = spaces.point_in(plan.base, plan.space, trial.values)
        if values is not None and trial.state == "complete" and trial.value is not None:
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
    figure.update_traces(marker={"color": BLUE, "showscale": False, "size": 8})
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


def _span_what_is_searched(figure: go.Figure, plan: Plan) -> None:
    """Extend both axes of a contour to the searched ranges."""
    names = _names(plan)
    by_name = {names[one.path]: one for one in plan.space}
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        _search_range(axis, by_name[axis.title.text])


def history(plan: Plan, trials: Sequence[Trial]) -> go.Figure:
    """Draw what each trial came to, and the best so far, as Optuna does, by the app's numbers."""
    import optuna
    from optuna import visualization

    study = optuna.create_study(direction=plan.looks_for.direction)
    for trial in trials:  # all of them, so that the numbers are those of the list
        is_over = trial.state == "complete" and trial.value is not None
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.COMPLETE if is_over else optuna.trial.TrialState.FAIL,
                value=trial.value if is_over else None,
            )
        )
    return visualization.plot_optimization_history(study)


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


def _dress(name: str, figure: go.Figure, looks_for: Objective) -> None:
    """Give a figure of Optuna's the look and the words of the app."""
    figure.update_layout(title=None, template=None, height=300, margin=_MARGIN)
    label = looks_for.label
    if name == "history":
        _dress_history(figure, looks_for)
    elif name == "importance":
        figure.update_layout(showlegend=False, margin={**_MARGIN, "r": 40})
        figure.update_xaxes(title=N_("importance"))
        figure.update_yaxes(title=None)
        figure.update_traces(marker={"color": BLUE})
    elif name == "contour":
        bar = {"title": {"text": None}, "thickness": 12, "outlinewidth": 0}
        figure.update_traces(colorscale=_SCALE, colorbar=bar, selector={"type": "contour"})
        figure.update_traces(marker={"size": 7}, selector={"type": "scatter"})
    elif name == "slice":
        for axis in figure.select_yaxes():
            if axis.title.text:
                axis.title.text = label
        _log(figure, [trace.y for trace in figure.data], looks_for)


def _dress_history(figure: go.Figure, looks_for: Objective) -> None:
    label, n = looks_for.label, len(figure.data[0].x)
    figure.update_layout(
        legend={"orientation": "h", "x": 0, "y": 1.1},
        xaxis={"title": N_("trial"), "tickformat": "d", "dtick": 1 if n <= 12 else None},
        yaxis={"title": label},
    )
    styles: tuple[dict[str, Any], ...] = (
        {"name": label, "marker": {"color": BLUE, "size": 8}},
        {"name": N_("best so far"), "line": {"color": VERMILION, "shape": "hv"}},
    )
    for trace, style in zip(figure.data, styles, strict=False):
        trace.update(style)
    _log(figure, [figure.data[0].y], looks_for)


def _log(figure: go.Figure, figures: Sequence[Sequence[float]], looks_for: Objective) -> None:
    """Draw losses of several orders of magnitude on a logarithmic axis."""
    values = [float(value) for part in figures for value in part if value is not None]
    if _is_far(values, looks_for):
        figure.update_yaxes(type="log")


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
