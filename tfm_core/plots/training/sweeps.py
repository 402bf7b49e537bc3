"""A sweep in figures: Optuna's own, of its trials, in the words and the look of the app."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import chart
from tfm_core.plots.palette import BLUE, VERMILION
from tfm_core.sentences import N_
from tfm_core.sweeps import space as spaces
from tfm_core.sweeps.plan import Objective, Plan
from tfm_core.sweeps.space import Choices, Dimension, Range, Value
from tfm_core.sweeps.store import Trial, optuna_study

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


def points(plan: Plan, max_points: int = 400) -> go.Figure:
    """Draw the points of a plan's grid on its first two settings; one alone stands on a line."""
    grid = list(islice(spaces.grid(plan.space), max_points))
    rows: dict[str, list[object]] = {
        "y": [""] * len(grid),
        "words": [spaces.words(plan.base, point) for point in grid],
    }
    columns = Columns(words=Column())
    for letter, dimension in zip("xy", plan.space, strict=False):
        values = [point[dimension.path] for point in grid]
        rows[letter] = [spaces.shown(v) if isinstance(v, bool | str) else v for v in values]
        columns[letter] = Column(spaces.label_of(plan.base, dimension.path), axis=_ticks(dimension))
    style = {
        "colour": BLUE,
        "symbol": "circle-open",
        "size": 14,
        "marker": {"line": {"width": 2}},
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }
    table = columns.table(rows)
    return chart(table, "points", x="x", y="y", hover=["words"], looks=[style], height=300)


def _ticks(dimension: Dimension) -> dict[str, Any]:
    """Return the scale of a setting, and where its tried values stand."""
    values = dimension.grid()
    scale = {"type": "log"} if isinstance(dimension, Range) and dimension.is_log else {}
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return {"type": "category"}
    if len(values) > 12:
        return scale
    names = [spaces.shown(value) for value in values]
    return {**scale, "tickmode": "array", "tickvals": list(values), "ticktext": names}


def figures(plan: Plan, trials: Sequence[Trial]) -> dict[str, go.Figure]:
    """Return Optuna's figures of the trials, by name; those that can't be drawn yet are left out.

    history, importance, contour, slice. Trials that lie outside the plan's
    space, as it is now, are in the history alone.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = _names(plan)
    study, n_over = optuna_study(plan, trials, names), n_finished(plan, trials)
    by_name: dict[str, go.Figure] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = [trial.value if trial.state == "complete" else None for trial in trials]
        if any(value is not None for value in measured):
            by_name["history"] = _history(measured, plan.looks_for)
        if n_over >= 2:
            by_name["slice"] = _slices(plan, trials)
        if n_over < ENOUGH:
            return by_name
        shares: dict[str, float] = {}
        if weighed := _weighed(plan, trials):
            shares = optuna.importance.get_param_importances(study, params=weighed)
            by_name["importance"] = _importance(shares)
        if len(names) > 1 and n_over >= _ENOUGH_BETWEEN:
            # the two that mattered most, of those that could be weighed; then others
            tried = study.get_trials(deepcopy=False)[0].params
            foremost = list(dict.fromkeys([*shares, *tried]))[:2]
            by_name["contour"] = _contour(study, plan, foremost)
    return by_name


def _scored(plan: Plan, trials: Sequence[Trial]) -> list[tuple[dict[str, Value], float]]:
    """Return the settings, by path, and the result of the finished trials in the plan's space."""
    scored = []
    for trial in trials:
        point = spaces.point_in(plan.base, plan.space, trial.values)
        if trial.state == "complete" and trial.value is not None and point is not None:
            scored.append((dict(point), trial.value))
    return scored


def n_finished(plan: Plan, trials: Sequence[Trial]) -> int:
    """Return how many trials the figures show."""
    return len(_scored(plan, trials))


def thin_values(plan: Plan, trials: Sequence[Trial]) -> list[tuple[str, Value, int]]:
    """Return setting, value and number of finished trials of each value with too few of them.

    Of values to choose from, those that have some finished trials, but fewer than
    ``MIN_FINISHED``: nothing follows from these about the setting.
    """
    names, scored, thin = _names(plan), _scored(plan, trials), []
    for dimension in plan.space:
        for value in dimension.values if isinstance(dimension, Choices) else ():
            n = sum(point[dimension.path] == value for point, _result in scored)
            if 0 < n < MIN_FINISHED:
                thin.append((names[dimension.path], value, n))
    return thin


def _weighed(plan: Plan, trials: Sequence[Trial]) -> list[str]:
    """Return the settings whose importance the finished trials support; none if only one of many.

    Shares of one setting beside nothing say nothing.
    """
    thin = {name for name, _value, _n in thin_values(plan, trials)}
    kept = [name for name in _names(plan).values() if name not in thin]
    return kept if len(kept) > 1 or len(plan.space) == len(kept) else []


def _slices(plan: Plan, trials: Sequence[Trial]) -> go.Figure:
    """Draw the result over each setting's range."""
    columns = Columns(value=Column(plan.looks_for.label, ".4~g"))
    rows: list[tuple[str, object, float]] = []
    names = _names(plan)
    for dimension in sorted(plan.space, key=lambda dimension: names[dimension.path]):
        columns[names[dimension.path]] = Column(names[dimension.path], ".4~g", _range(dimension))
        for point, value in _scored(plan, trials):
            tried = point[dimension.path]
            rows.append(
                (
                    names[dimension.path],
                    tried if isinstance(dimension, Range) else repr(tried),
                    value,
                )
            )
    is_far = _is_far([value for *_, value in rows], plan.looks_for)
    return chart(
        columns.table(dict(zip(("setting", "at", "value"), zip(*rows, strict=True), strict=True))),
        "points",
        x="at",
        y="value",
        facet="setting",
        n_beside=len(plan.space),
        looks=[{"colour": BLUE, "size": 8}],
        up={"type": "log" if is_far else None},
        height=300,
        top=12,
        showlegend=False,
    )


def _range(dimension: Dimension) -> dict[str, Any]:
    """Return the axis of a setting: the searched range and a margin, or all values."""
    if not isinstance(dimension, Range):
        return {"type": "category", "categoryarray": [repr(value) for value in dimension.grid()]}
    low, high = (
        (math.log10(dimension.low), math.log10(dimension.high))
        if dimension.is_log
        else (dimension.low, dimension.high)
    )
    room = 0.05 * (high - low)
    return {"type": "log" if dimension.is_log else None, "range": [low - room, high + room]}


def _contour(study: optuna.Study, plan: Plan, foremost: list[str]) -> go.Figure:
    """Draw the result over two settings' ranges, interpolated: Optuna's own figure."""
    from optuna import visualization

    figure = visualization.plot_contour(study, params=foremost, target_name=plan.looks_for.label)
    figure.update_layout(title=None, template=None, height=300, margin=_MARGIN)
    bar = {"title": {"text": None}, "thickness": 12, "outlinewidth": 0}
    figure.update_traces(colorscale=_SCALE, colorbar=bar, selector={"type": "contour"})
    figure.update_traces(marker={"size": 7}, selector={"type": "scatter"})
    by_name = {_names(plan)[dimension.path]: dimension for dimension in plan.space}
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        if isinstance(dimension := by_name[axis.title.text], Range):
            axis.update(range=_range(dimension)["range"])
    return figure


def _history(measured: Sequence[float | None], looks_for: Objective) -> go.Figure:
    """Draw what each trial came to, and the best so far, by the app's numbers."""
    results = pd.Series(measured, dtype=float).dropna()
    best = results.cummax() if looks_for.is_maximized else results.cummin()
    return chart(
        TRIALS.table({"trial": results.index, "value": results, "best": best}),
        x="trial",
        y={"value": looks_for.label, "best": N_("best so far")},
        looks=[
            {"colour": BLUE, "mode": "markers", "size": 8},
            {"colour": VERMILION, "mode": "lines", "shape": "hv"},
        ],
        across={"dtick": 1 if len(results) <= 12 else None},
        up={"title": looks_for.label, "type": "log" if _is_far(list(results), looks_for) else None},
        height=300,
    )


def _importance(shares: Mapping[str, float]) -> go.Figure:
    """Draw how much of the result's spread each setting explains, as Optuna finds it."""
    texts = [f"{share:.2f}" if share >= 0.01 else "<0.01" for share in shares.values()]
    return chart(
        TRIALS.table({"setting": [*shares], "importance": shares.values(), "words": texts}),
        "bars",
        x="importance",
        y="setting",
        orientation="h",
        text="words",
        height=300,
    )


def _names(plan: Plan) -> dict[str, str]:
    """Return a name of each setting that no other has."""
    labels = {
        dimension.path: str(spaces.label_of(plan.base, dimension.path)) for dimension in plan.space
    }
    twice = [label for label in labels.values() if list(labels.values()).count(label) > 1]
    return {
        path: f"{label} ({path})" if label in twice else label for path, label in labels.items()
    }


def _is_far(values: Sequence[float], looks_for: Objective) -> bool:
    """Return whether figures are losses of several orders of magnitude."""
    is_loss = not looks_for.is_maximized and bool(values) and min(values) > 0
    return is_loss and max(values) > _FAR * min(values)
