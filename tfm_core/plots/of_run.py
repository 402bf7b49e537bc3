"""Figures of an opened run for a notebook.

from tfm_core.plots import of_run
of_run.curves(run, "accuracy")
of_run.attention(run.attention(layer=0), head=1)
"""

from __future__ import annotations

from typing import Literal, get_args

import plotly.graph_objects as go

from tfm_core.inspect.attention.maps import MapView
from tfm_core.plots.chart import cells
from tfm_core.plots.heads.attention import head_map, short, top_of
from tfm_core.plots.kinds import template
from tfm_core.plots.palette import BACKGROUNDS
from tfm_core.plots.training.curves import learning_curve
from tfm_core.probe.labels import KINDS
from tfm_core.runs.curves import Curves
from tfm_core.runs.notebook import Attention, OpenedRun
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

Quantity = Literal["loss", "accuracy", "sequence_accuracy"]
_MAX_ACROSS = 4  # heads beside each other
_CELL = 190  # pixels of a small map


def curves(run: OpenedRun, quantity: Quantity = "loss", *, window: int = 20) -> go.Figure:
    """Draw one quantity over the steps: each batch and their mean, validation, and the test.

    window: how many batches the thick line averages. Raises ValueError for another quantity.
    """
    if quantity not in get_args(Quantity):
        raise StudentError(
            "There is no curve {quantity!r}. Choose from {known}.",
            quantity=quantity,
            known=", ".join(get_args(Quantity)),
        )
    measured = run.run.curves()
    is_unknown = quantity == "loss" and not is_in_nats(run.run, measured)
    figure = learning_curve(
        measured,
        quantity,
        title=N_("loss") if is_unknown else "",
        total_steps=run.status.total_steps or None,
        window=window,
    )
    return _shown(figure).update_layout(title={"text": run.name}, margin_t=64)


def is_in_nats(run: Run, curves: Curves) -> bool:
    """Return whether the loss is known to be one of probabilities; a loop may report any."""
    return run.experiment.training is not None or "start_loss" in curves.started


def attention(maps: Attention, head: int | None = None) -> go.Figure:
    """Draw the heads of one layer: all of them small, or one large with its numbers.

    Raises ValueError for the heads of several layers at once, and for a head that is not there.
    """
    if maps.layer is None:
        raise StudentError("These are maps of all layers. Choose one: run.attention(layer=0).")
    n_heads = len(maps.weights)
    if head is not None and not 0 <= head < n_heads:
        raise StudentError(
            "There is no head {head}: this layer has {n}, counted from 0.", head=head, n=n_heads
        )
    kind = KINDS[maps.kind]
    title = N_(
        "{kind}, layer {layer}, step {step:,}",
        kind=kind.label,
        layer=maps.layer + 1,
        step=maps.step,
    )
    if head is None:
        return _grid(maps, title)
    view = MapView(
        maps.weights[head],
        maps.query,
        maps.key,
        maps.may_attend,
        kind.written if kind.is_named_by_written else kind.query,
        kind.key,
    )
    return _shown(head_map(view, N_("{title}, head {head}", title=title, head=head + 1)))


def _grid(maps: Attention, title: str) -> go.Figure:
    n_heads = len(maps.weights)
    n_rows = -(-n_heads // _MAX_ACROSS)
    figure = cells(
        maps.weights,
        "share",
        (0, top_of(maps.weights)),
        says=N_("query %{y}, key %{x}: %{z:.3f}<extra></extra>"),
        legend=N_("weight"),
        gap=0,
        facets=[N_("head {n}", n=number) for number in range(1, n_heads + 1)],
        n_beside=min(n_heads, _MAX_ACROSS),
        gaps=(0.02, 0.12 / n_rows),
        height=120 + _CELL * n_rows,
        top=80,
        x={"names": list(map(short, maps.key)), "tickangle": -45},
        y={"names": list(map(short, maps.query))},
        title={"text": title},
    )
    return _shown(figure)


def _shown(figure: go.Figure) -> go.Figure:
    """Give a figure the app's look and a light background: a notebook may be dark."""
    return figure.update_layout(template=template("light"), paper_bgcolor=BACKGROUNDS["light"])
