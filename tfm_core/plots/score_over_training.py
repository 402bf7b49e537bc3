"""The known-answer score of every head over the training: when a head learns to align."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.attention import Theme
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.plots.template import template


def score_over_training(
    frame: pd.DataFrame,
    *,
    best: tuple[str, int] | None = None,
    step: int | None = None,
    theme: Theme = "light",
) -> go.Figure:
    """Draw a line a head: its share of attention on true source words, at each snapshot.

    frame: of ``alignment.score_over_training``. best: module and head (from 1) of the line that
    stands out. step: where a mark stands. Steps are spaced as their logarithm, 0 at the left end.
    """
    figure = go.Figure()
    for (module, layer, head), rows in frame.groupby(["module", "layer", "head"], sort=True):
        is_best = best == (module, head)
        figure.add_scatter(
            x=_places(rows["step"].to_numpy()),
            y=rows["share"].to_numpy(np.float32),
            customdata=np.stack([rows["step"], rows["aer"]], -1),
            name=f"layer {layer}, head {head}",
            mode="lines+markers",
            line={"color": COLOURS["cross"] if is_best else GREY, "width": 3 if is_best else 1.3},
            marker={"size": 7 if is_best else 4, "symbol": (int(head) - 1) % 12},
            opacity=1 if is_best else 0.75,
            hovertemplate="step %{customdata[0]:,}: %{y:.3f}, error rate %{customdata[1]:.3f}",
        )
    if len(frame):
        chance = float(frame["chance"].iloc[-1])
        figure.add_hline(chance, line={"color": COLOURS["chance"], "dash": "dot", "width": 1.5})
    if step is not None:
        figure.add_vline(float(_places(np.array([step]))[0]), line={"color": GREY, "width": 1})
    steps = np.unique(frame["step"].to_numpy()) if len(frame) else np.array([0])
    shown = steps[:: max(1, -(-len(steps) // 12))]
    figure.update_layout(
        template=template(theme), height=340, margin={"l": 8, "r": 8, "t": 24, "b": 8}
    )
    figure.update_xaxes(
        title={"text": "step of the training (log)"},
        tickvals=_places(shown),
        ticktext=[f"{value:,}" for value in shown],
    )
    figure.update_yaxes(
        title={"text": "share on the true source"}, range=[-0.02, 1.02], tickformat=".0%"
    )
    return figure


def _places(
    steps: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.log10(np.asarray(steps, np.float64) + 1).astype(np.float32)
