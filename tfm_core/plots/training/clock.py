"""Addition modulo n: the table of all sums, and the frequencies of an embedding over a training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.chart import add_legend, bands_of, cells
from tfm_core.plots.kinds import pale, sequential
from tfm_core.plots.palette import GREEN, GREY, ThemeName
from tfm_core.probe.types import Bools
from tfm_core.sentences import N_

STATES = (N_("new, wrong"), N_("new, right"), N_("trained, wrong"), N_("trained, right"))
_COLOURS = (pale(GREY, 0.3), pale(GREEN, 0.5), GREY, GREEN)  # the trained ones are darker


def sums(is_right: Bools, is_trained: Bools, *, height: int) -> go.Figure:
    """Draw all sums (n, n): which were trained, and which the model gets right."""
    state = 2 * is_trained.astype(np.int8) + is_right
    word = "%{customdata}<extra></extra>"
    hover = N_("{a} + {b}: {state}", a="%{y}", b="%{x}", state=word)
    words = np.array(STATES, object)[state]
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False}
    figure = cells(
        state,
        bands_of(_COLOURS),
        (-0.5, len(_COLOURS) - 0.5),
        height=height,
        top=30,
        x={"title": N_("b"), "constrain": "domain", **axis},
        y={"title": N_("a"), "scaleanchor": "x", "autorange": "reversed", **axis},
        trace={"customdata": words, "hovertemplate": hover, "xgap": None, "ygap": None},
    )
    for name, colour in zip(STATES, _COLOURS, strict=True):
        add_legend(figure, name, colour)
    return figure


def frequencies(
    steps: npt.NDArray[np.int64],
    shares: npt.NDArray[np.floating[Any]],
    *,
    height: int,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the share (S, K) of each frequency, from 1, in the power of the embedding."""
    share = "%{z:.1%}<extra></extra>"
    hover = N_("step {step}, frequency {k}: {share}", step="%{x}", k="%{y}", share=share)
    places = {"x": steps, "y": np.arange(1, shares.shape[1] + 1)}
    return cells(
        shares.T,
        sequential(theme),
        (0, None),
        height=height,
        x={"title": N_("step"), "showgrid": False, "range": [int(steps[0]), int(steps[-1])]},
        y={"title": N_("frequency"), "showgrid": False},
        trace={**places, "hovertemplate": hover, "xgap": None, "ygap": None},
    )
