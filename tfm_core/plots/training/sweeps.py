"""A sweep in figures: Optuna's own, of its trials, in the words and the look of the app."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from tfm_core.plots.palette import BLUE, GREY, VERMILION
from tfm_core.sentences import N_
from tfm_core.sweeps import space as spaces
from tfm_core.sweeps.foreign import ForeignStudy, as_study
from tfm_core.sweeps.objectives import RUNGS, Objective
from tfm_core.sweeps.plan import Plan
from tfm_core.sweeps.space import Choices, Dimension, Range, Value
from tfm_core.sweeps.study import Trial, distributions

if TYPE_CHECKING:
    import optuna

ENOUGH = 4
"""Completed trials needed to rank the settings by importance."""
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

    history, on-the-way, importance, parallel, contour, slice. Trials that lie outside the plan's
    space, as it is now, are in the history alone.
    """
    import optuna
    from optuna import visualization

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study, n_over = _study(plan, trials)
    measured = [trial for trial in trials if trial.value is not None and trial.state == "complete"]
    found: dict[str, go.Figure] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if measured:
            found["history"] = history(plan, trials)
        if any(one.intermediate_values for one in study.get_trials(deepcopy=False)):
            found["on-the-way"] = _by_figure(
                visualization.plot_intermediate_values(study), study, plan.looks_for
            )
        if n_over >= 2:
            found["slice"] = _slices(study, plan, trials)
            found["parallel"] = _parallel(plan, trials)
        if n_over >= ENOUGH:
            weighed = _weighed(plan, trials)
            if weighed:
                found["importance"] = visualization.plot_param_importances(study, params=weighed)
            if len(plan.space) > 1:
                found["contour"] = visualization.plot_contour(
                    study, params=_foremost(study, weighed), target_name=plan.looks_for.label
                )
    for name, figure in found.items():
        if name != "parallel":
            _dress(name, figure, plan.looks_for)
    if "contour" in found:
        _add_given_up(found["contour"], plan, trials)
    return found


def _scored(plan: Plan, trials: Sequence[Trial]) -> list[tuple[Trial, dict[str, Value], float]]:
    """Return the trials in the plan's space that have a figure, with their values by label.

    The figure of a trial that was given up is its last one.
    """
    names, found = _names(plan), []
    for trial in trials:
        values = spaces.point_in(plan.base, plan.space, trial.values)
        figure = _figure(trial)
        if values is not None and figure is not None:
            found.append((trial, {names[path]: one for path, one in values.items()}, figure))
    return found


def _figure(trial: Trial) -> float | None:
    if trial.state == "complete":
        return trial.value
    if trial.state == "pruned" and trial.reports:
        return trial.reports[max(trial.reports)]
    return None


def counts(plan: Plan, trials: Sequence[Trial]) -> tuple[int, int]:
    """Return how many trials the figures show as finished, and how many as pruned."""
    states = [trial.state for trial, _values, _figure in _scored(plan, trials)]
    return states.count("complete"), states.count("pruned")


def thin_values(plan: Plan, trials: Sequence[Trial]) -> list[tuple[str, Value, int]]:
    """Return setting, value and number of finished trials of each value with too few of them.

    Of values to choose from, those that were tried and have fewer than ``MIN_FINISHED`` finished
    trials: nothing follows from these about the setting.
    """
    names, scored, found = _names(plan), _scored(plan, trials), []
    for one in plan.space:
        if not isinstance(one, Choices):
            continue
        name = names[one.path]
        for value in one.values:
            states = [trial.state for trial, values, _ in scored if values[name] == value]
            n = states.count("complete")
            if states and n < MIN_FINISHED:
                found.append((name, value, n))
    return found


def _weighed(plan: Plan, trials: Sequence[Trial]) -> list[str]:
    """Return the settings whose importance the finished trials support; none if only one of many.

    Shares of one setting beside nothing say nothing.
    """
    thin = {name for name, _value, _n in thin_values(plan, trials)}
    kept = [name for name in _names(plan).values() if name not in thin]
    return kept if len(kept) > 1 or len(plan.space) == len(kept) else []


def _slices(study: optuna.Study, plan: Plan, trials: Sequence[Trial]) -> go.Figure:
    """Draw the result over each setting's range; pruned trials are hollow."""
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
        given_up = _given_up(plan, trials, [name], axis.type)
        figure.add_trace(given_up.update(xaxis=f"x{suffix}", yaxis=f"y{suffix}"))
    return figure


def _given_up(
    plan: Plan, trials: Sequence[Trial], names: Sequence[str], *axis_types: str | None
) -> go.Scatter:
    """Return pruned trials as hollow dots: by one setting and the result, or by two settings.

    axis_types: of the axis of each setting; Optuna names categories by ``repr`` in slices, and by
    ``str`` in contours.
    """
    scored = [
        (values, value) for trial, values, value in _scored(plan, trials) if trial.state == "pruned"
    ]
    written = repr if len(names) == 1 else str
    columns: list[list[Any]] = [
        [written(values[name]) if kind == "category" else values[name] for values, _ in scored]
        for name, kind in zip(names, axis_types, strict=True)
    ]
    figures = [value for _, value in scored]
    return go.Scatter(
        x=columns[0],
        y=columns[1] if len(names) > 1 else figures,
        mode="markers",
        marker={"symbol": "circle-open", "size": 8, "color": GREY, "line": {"width": 2}},
        text=[plan.looks_for.said(value) for value in figures],
        hovertemplate=N_("pruned at {figure}", figure="%{text}") + "<extra></extra>",
        showlegend=False,
    )


def _search_range(axis: Any, one: Dimension) -> None:
    """Set an axis to the searched range and a margin."""
    if not isinstance(one, Range):
        return
    low, high = (math.log10(one.low), math.log10(one.high)) if one.is_log else (one.low, one.high)
    room = 0.05 * (high - low)
    axis.update(range=[low - room, high + room])


def _add_given_up(figure: go.Figure, plan: Plan, trials: Sequence[Trial]) -> None:
    """Add pruned trials to a contour, hollow, and extend both axes to the searched ranges."""
    names = _names(plan)
    by_name = {names[one.path]: one for one in plan.space}
    across, up = figure.layout.xaxis, figure.layout.yaxis
    labels = [axis.title.text for axis in (across, up)]
    for axis, label in zip((across, up), labels, strict=True):
        _search_range(axis, by_name[label])
    figure.add_trace(_given_up(plan, trials, labels, across.type, up.type))


def _parallel(plan: Plan, trials: Sequence[Trial]) -> go.Figure:
    """Draw a line per trial over the range of each setting; pruned trials are dotted."""
    scored, names = _scored(plan, trials), _names(plan)
    figures = [figure for _, _, figure in scored]
    finished = [figure for trial, _, figure in scored if trial.state == "complete"]
    low, high = min(figures), max(figures)
    is_log = _is_far(figures, plan.looks_for)

    def part(value: float, low: float, high: float) -> float:
        """Return where a figure lies between two, from 0 to 1."""
        if is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return (value - low) / (high - low) if high > low else 0.5

    label, figure = plan.looks_for.label, go.Figure()
    columns = [(str(label), [(0.0, plan.looks_for.said(low)), (1.0, plan.looks_for.said(high))])]
    for one in plan.space:
        ticks = [(_share(one, value), str(spaces.shown(value))) for value in _tick_values(one)]
        columns.append((names[one.path], ticks))
    for trial, values, value in scored:
        place = part(value, low, high)
        goodness = part(value, min(finished), max(finished))
        share = goodness if plan.looks_for.is_maximized else 1 - goodness
        figure.add_scatter(
            x=list(range(len(columns))),
            y=[place, *(_share(one, values[names[one.path]]) for one in plan.space)],
            mode="lines",
            line={
                "color": _colour(share) if trial.state == "complete" else GREY,
                "width": 1.2 + 2 * share**4 if trial.state == "complete" else 1.2,
                "dash": "solid" if trial.state == "complete" else "dot",
            },
            opacity=0.9,
            name=N_("trial {n}", n=trial.number),
            hovertext=N_(
                "trial {n}: {figure}, {settings}",
                n=trial.number,
                figure=plan.looks_for.said(value),
                settings=spaces.words(plan.base, trial.values),
            ),
            hoverinfo="text",
        )
    for number, (_name, ticks) in enumerate(columns):
        figure.add_vline(x=number, line={"color": GREY, "width": 1}, layer="below")
        for height, words in ticks:
            figure.add_annotation(
                x=number, y=height, text=words, showarrow=False, xanchor="right", xshift=-4,
                font={"size": 10, "color": GREY},
            )  # fmt: skip
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(columns))),
        ticktext=[name for name, _ticks in columns],
        range=[-0.3, len(columns) - 0.8],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(range=[-0.08, 1.08], visible=False, fixedrange=True)
    margin = {"l": 56, "r": 16, "t": 28, "b": 48}
    return figure.update_layout(height=300, margin=margin, showlegend=False, hovermode="closest")


def _share(one: Dimension, value: Value) -> float:
    """Return where a value lies in what is searched, from 0 to 1."""
    if isinstance(one, Choices):
        return one.values.index(value) / max(1, len(one.values) - 1)
    low, high, at = one.low, one.high, float(value)
    if one.is_log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return (at - low) / (high - low)


def _tick_values(one: Dimension) -> tuple[Value, ...]:
    if isinstance(one, Choices):
        return one.values
    return dataclasses.replace(one, points=4).grid()


def of_foreign(look: ForeignStudy) -> dict[str, go.Figure]:
    """Return Optuna's figures of a study from elsewhere: history, parallel, importance.

    Those that its trials are too few for, or too alike, are left out.
    """
    from optuna import visualization

    study, found = as_study(look), {}
    label = look.looks_for.label
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["history"] = visualization.plot_optimization_history(study)
        if len(look.complete) > 1 and look.settings:
            found["parallel"] = visualization.plot_parallel_coordinate(study, target_name=label)
        if len(look.complete) >= ENOUGH and look.settings:
            with contextlib.suppress(ValueError, RuntimeError):  # its trials are all alike
                found["importance"] = visualization.plot_param_importances(study)
    for name, figure in found.items():
        _dress(name, figure, look.looks_for)
    return found


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


def _study(plan: Plan, trials: Sequence[Trial]) -> tuple[optuna.Study, int]:
    """Return the trials of the plan's space as a study whose settings have labels, and how many."""
    import optuna

    states = optuna.trial.TrialState

    study = optuna.create_study(direction=plan.looks_for.direction)
    names = _names(plan)
    ranges = {names[path]: one for path, one in distributions(plan.space).items()}
    n_over = 0
    for trial in trials:
        values = spaces.point_in(plan.base, plan.space, trial.values)
        if values is None or trial.state == "failed":
            continue
        is_over = trial.state == "complete" and trial.value is not None
        n_over += is_over
        study.add_trial(
            optuna.trial.create_trial(
                state=states.COMPLETE
                if is_over
                else states.RUNNING
                if trial.state == "running"
                else states.PRUNED,
                value=trial.value,
                params={names[path]: value for path, value in values.items()},
                distributions=ranges,
                intermediate_values=_on_the_way(trial.reports),
                user_attrs={"number": trial.number},
            )
        )
    return study, n_over


def _on_the_way(reports: Mapping[int, float]) -> dict[int, float]:
    """Return what was reported by the share of the training that was done, in per cent."""
    return {round(100 * rung / RUNGS): value for rung, value in reports.items()}


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
    elif name == "on-the-way":
        figure.update_layout(showlegend=False)
        figure.update_xaxes(title=N_("% of training"))
        figure.update_yaxes(title=label)
        _log(figure, [trace.y for trace in figure.data], looks_for)
    elif name == "importance":
        figure.update_layout(showlegend=False, margin={**_MARGIN, "r": 40})
        figure.update_xaxes(title=N_("importance"))
        figure.update_yaxes(title=None)
        figure.update_traces(marker={"color": BLUE})
    elif name == "parallel":
        _dress_lines(figure, looks_for)
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


def _dress_lines(figure: go.Figure, looks_for: Objective) -> None:
    """Colour each line of the parallel coordinates by its figure; the best stand out."""
    *lines, key = figure.data
    for line in lines:
        share = float(line.y[0]) if looks_for.is_maximized else 1 - float(line.y[0])
        line.update(line={"color": _colour(share), "width": 1.2 + 2 * share**4}, opacity=0.9)
    key.update(marker={"showscale": False})
    figure.update_annotations(font={"color": GREY})
    figure.update_layout(plot_bgcolor=None, margin={"l": 56, "r": 16, "t": 28, "b": 48})


def _by_figure(figure: go.Figure, study: optuna.Study, looks_for: Objective) -> go.Figure:
    """Colour each run's line by the rank of its result."""
    reported = [one for one in study.get_trials(deepcopy=False) if one.intermediate_values]
    last = [one.intermediate_values[max(one.intermediate_values)] for one in reported]
    order = sorted(last, reverse=not looks_for.is_maximized)  # the worst first
    for trace, one, value in zip(figure.data, reported, last, strict=True):
        share = order.index(value) / max(1, len(order) - 1)
        trace.update(
            name=N_("trial {n}", n=one.user_attrs["number"]),
            line={"color": _colour(share), "width": 1.5},
            marker={"color": _colour(share), "size": 4},
        )
    return figure


def _colour(share: float) -> str:
    """Return the colour of a figure, from the worst (0) to the best (1)."""
    from plotly.colors import sample_colorscale

    found = sample_colorscale([hue for _, hue in _SCALE], [min(max(share, 0.0), 1.0)])
    return str(found[0])


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
