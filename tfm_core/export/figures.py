"""Figures of a run as files, and its curves as one table of what was recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import plotly.graph_objects as go

from tfm_core.export import layout
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots import export
from tfm_core.plots.export import map_svg
from tfm_core.plots.training.curves import (
    MeasuredCurves,
    Measurements,
    ReferenceLine,
    learning_curve,
)
from tfm_core.probe.labels import axes, kind_of, modules_by_kind, rows
from tfm_core.probe.masks import on_examples
from tfm_core.runs.curves import Curves, Series
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

MAX_HEADS = 16
"""Heads of the last layer of one kind of attention that are drawn."""

_WINDOW = 10


def of(run: Run, curves: Curves) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each figure: the curves, and what the last snapshot looks at."""
    words = "A thin line is a batch, the thick one the mean of ten; markers are unseen examples."
    pages = (loss(run, curves), accuracy(run, curves))
    yield layout.CURVES, export.page(*pages, title=run.meta.name, words=words)
    yield from heads(run)


def loss(run: Run, curves: Curves) -> go.Figure:
    """Return the curve of the loss, with the loss of guessing."""
    start = curves.started.get("start_loss")
    marks = [ReferenceLine(start, f"guessing: {start:.2f}")] if start else []
    return _curve(run, curves, "loss", "loss (nats)", marks)


def accuracy(run: Run, curves: Curves) -> go.Figure:
    """Return the curve of the accuracy, with that of guessing."""
    chance = curves.started.get("chance")
    marks = [ReferenceLine(chance, f"guessing: {chance:.1%}")] if chance else []
    return _curve(run, curves, "accuracy", "accuracy", marks)


def _curve(
    run: Run, curves: Curves, column: str, title: str, marks: list[ReferenceLine]
) -> go.Figure:
    series = {
        "training": curves.steps,
        "validation": curves.validation,
        "averaged weights": curves.averaged,
        "test": curves.test,
    }
    train, validation, averaged, test = (
        Measurements(name, one["step"], one[column]) for name, one in series.items()
    )
    return learning_curve(
        MeasuredCurves(train, [validation], [test], [averaged]),
        y_title=title,
        marks=marks,
        total_steps=run.status.total_steps,
        window=_WINDOW,
        is_share=column == "accuracy",
    )


def heads(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the heads of the last layer of each kind of attention, on the first example."""
    steps = run.snapshot_steps()
    try:
        probe = run.probe()
        item = probe.items[0]
        snapshot = run.snapshot(steps[-1])
    except (StudentError, IndexError):  # a run that kept none, or whose files are damaged
        return
    for kind, modules in modules_by_kind(run.experiment).items():
        weights = snapshot.attention.get(modules[-1])
        if weights is None:
            continue
        names = axes(run.experiment, item, modules[-1])
        called = rows(run.experiment, item, modules[-1])
        n_queries, n_keys = names.shape
        (may_attend,) = on_examples(
            run.experiment,
            probe.items[: len(weights)],
            modules[-1],
            snapshot.masks,
            weights.shape[2:],
        )[:1]
        for head, one in enumerate(weights[0][:MAX_HEADS, :n_queries, :n_keys], 1):
            layer = len(modules)
            yield (
                f"figures/{kind}-layer-{layer}-head-{head}.svg",
                map_svg(
                    MapView(
                        one.astype("float32"),
                        called.names,
                        names.key,
                        may_attend[:n_queries, :n_keys],
                        called.title,
                        kind_of(run.experiment, modules[-1]).key,
                    ),
                    title=f"{kind} attention, layer {layer}, head {head}, step {snapshot.step:,}",
                ),
            )


def table(curves: Curves) -> pd.DataFrame:
    """Return all series one below the other; ``split`` says which, "train" for the batches.

    Validation of averaged weights, where there are any, is "validation-average".
    """
    parts = [
        _frame("train", curves.steps),
        _frame("validation", curves.validation),
        _frame("validation-average", curves.averaged),
        _frame("test", curves.test),
    ]
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    rows = [part for part in parts if len(part)]
    whole = pd.concat(rows) if rows else parts[0]
    return whole.reindex(columns=names).astype({"step": "int64"})


def csv_of(curves: Curves) -> bytes:
    """Return the table as CSV."""
    return export.csv(table(curves))


def _frame(split: str, series: Series) -> pd.DataFrame:
    columns = {name: series[name] for name in series.columns}
    return pd.DataFrame({"split": [split] * len(series), **columns})
