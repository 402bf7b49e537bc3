"""Where a model fails, as figures: confusions, shares right and losses by group, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.errors import N_BINS
from tfm_core.plots.chart import Details, Look, cells, chart
from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.kinds import frame
from tfm_core.plots.palette import CARDS, COLOURS, GREY, INKS
from tfm_core.plots.texts.writing import marked
from tfm_core.sentences import N_

_ERRORS: dict[Theme, tuple[str, str]] = {
    "light": ("#fbe3d0", "#d55e00"),
    "dark": ("#4a2a12", "#e8762a"),
}
_MAX_LETTERS = 14


def confusion(
    counts: npt.NDArray[np.int64],
    names: Sequence[str],
    theme: Theme = "light",
    *,
    wrong: npt.NDArray[np.int64] | None = None,
    top: int | None = None,
    chosen: tuple[int, int] | None = None,
    height: int = 400,
) -> go.Figure:
    """Draw the true class down and the predicted class across; only errors have colour.

    counts: (classes, classes). wrong: how many of them are errors, where those on the diagonal may
    be, too: a class that groups several has no colour there, and its hover text says how many
    are wrong. top: the count that has the strongest colour; None for the largest. chosen: row and
    column of the cell that is framed.
    """
    off_diagonal = counts * (1 - np.eye(len(counts), dtype=np.int64))
    errors = np.where(off_diagonal > 0, off_diagonal if wrong is None else wrong, 0).astype(
        np.float32
    )
    errors[errors == 0] = np.nan
    wrong = off_diagonal if wrong is None else wrong
    pale, strong = _ERRORS[theme]
    classes = [_short(name) for name in names]
    figure = cells(
        errors,
        [[0, pale], [1, strong]],
        (0, max(3.0, float(wrong.max(initial=0) if top is None else top))),
        says=[
            [_hover(a, b, n, bad) for b, n, bad in zip(names, row, bads, strict=True)]
            for a, row, bads in zip(names, counts.tolist(), wrong.tolist(), strict=True)
        ],
        texts=[[str(n) if n else "" for n in row] for row in counts.tolist()],
        trace={"textfont": {"color": INKS[theme]}},
        height=height,
        x={"title": N_("predicted"), "names": classes},
        y={"title": N_("true"), "names": classes},
        plot_bgcolor=CARDS[theme],
    )
    if chosen is not None:
        row, column = chosen
        ends = (column - 0.5, row - 0.5, column + 0.5, row + 0.5)
        figure.add_shape(frame(*ends, colour=INKS[theme], width=3))
    return figure


def _hover(truth: str, predicted: str, n: int, n_wrong: int) -> str:
    names = {"truth": escape(marked(truth)), "said": escape(marked(predicted))}
    if truth == predicted and n_wrong:
        return N_(
            "true {truth}, predicted {said}: {n:,} ({bad:,} wrong)", **names, n=n, bad=n_wrong
        )
    return N_("true {truth}, predicted {said}: {n:,}", **names, n=n)


def _short(name: str) -> str:
    shown = marked(name)
    return escape(shown if len(shown) <= _MAX_LETTERS else f"{shown[: _MAX_LETTERS - 1]}…")


_POINT: Look = {"colour": COLOURS["validation"], "size": 9}


def by_group(
    table: pd.DataFrame,
    title: str,
    of: str = "accuracy",
    look: Look = _POINT,
    **details: Unpack[Details],
) -> go.Figure:
    """Draw ``accuracy`` or ``loss`` with 95% intervals. title: what the groups are."""
    details |= {"ends": ("low", "high"), "hover": ("n_right", "n", "low", "high")}
    if of == "loss":
        details |= {"ends": ("loss_low", "loss_high"), "hover": ("n", "accuracy")}
    names = {"title": title, "type": "category", "dtick": 1}
    is_flat = details.setdefault("orientation", "h") == "h"
    details |= {"up": names} if is_flat else {"across": names}
    x, y = (of, "label") if is_flat else ("label", of)
    return chart(table, "points", x=x, y=y, looks=[look], **details)


def reliability(bins: pd.DataFrame, n_bins: int = N_BINS) -> go.Figure:
    """Draw the share right over the confidence, bin by bin, with counts and 95% intervals.

    The diagonal is a model whose confidence can be taken at its word. n_bins: with empty ones.
    """
    look = {
        "colour": COLOURS["validation"],
        "opacity": 0.75,
        "width": 0.92 / n_bins,
        "texttemplate": "%{text:,}",
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "constraintext": "none",
        "showlegend": False,
    }
    figure = chart(
        bins,
        "bars",
        x="middle",
        y="accuracy",
        ends=("low", "high"),
        text="n",
        hover=("confidence", "n_right", "n", "low", "high"),
        looks=[look],
        across={"title": N_("confidence"), "range": [0, 1], "tickformat": ".0%"},
        up={"range": [0, 1.02]},
        height=350,
        top=36,
    )
    return figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": GREY, "dash": "dash", "width": 2},
        name=N_("perfectly calibrated"),
        hoverinfo="skip",
    )
