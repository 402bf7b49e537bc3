"""Where a model fails, as figures: confusions, shares right and losses by group, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.errors.scores import N_BINS
from tfm_core.plots.chart import cells
from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.kinds import error_bars, frame, lay_out, ticks
from tfm_core.plots.palette import CARDS, COLOURS, GREY, INKS
from tfm_core.plots.texts.writing import marked
from tfm_core.sentences import N_, Paragraph

_ERRORS: dict[Theme, tuple[str, str]] = {
    "light": ("#fbe3d0", "#d55e00"),
    "dark": ("#4a2a12", "#e8762a"),
}
_ROW = 26  # pixels of a group
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
    places = np.arange(len(names))
    classes = ticks([_short(name) for name in names])
    end = len(names) - 0.5
    figure = cells(
        errors,
        [[0, pale], [1, strong]],
        (0, max(3.0, float(wrong.max(initial=0) if top is None else top))),
        trace={
            "x": places,
            "y": places,
            "text": [[str(n) if n else "" for n in row] for row in counts.tolist()],
            "texttemplate": "%{text}",
            "textfont": {"color": INKS[theme]},
            "hovertext": [
                [_hover(a, b, n, bad) for b, n, bad in zip(names, row, bads, strict=True)]
                for a, row, bads in zip(names, counts.tolist(), wrong.tolist(), strict=True)
            ],
            "hoverinfo": "text",
            "hoverongaps": True,
        },
        height=height,
        x={"title": N_("predicted"), "range": [-0.5, end], **classes},
        y={"title": N_("true"), "range": [end, -0.5], **classes},
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


def accuracies(groups: pd.DataFrame, kind: str) -> go.Figure:
    """Draw the share right of each group, one below the other, with its 95% interval.

    kind: what distinguishes the groups.
    """
    ends = groups[["low", "high"]].to_numpy()
    low = max(0.0, float(ends[:, 0].min()) - 0.02)
    return _rows(
        groups,
        "accuracy",
        between(groups["accuracy"].to_numpy(), ends),
        ["n_right", "n", "low", "high"],
        Paragraph("figures/accuracy"),
        x={"title": N_("share right"), "tickformat": ".0%", "range": [low, 1.005]},
        kind=kind,
    )


def losses(groups: pd.DataFrame, kind: str) -> go.Figure:
    """Draw the mean loss of each group in nats, one below the other, with its 95% interval."""
    error = groups["loss_error"].to_numpy()
    return _rows(
        groups,
        "loss",
        error_bars(error, error, thickness=1.5),
        ["n", "loss_error", "accuracy"],
        Paragraph("figures/loss"),
        x={"title": N_("mean loss (nats per token)"), "rangemode": "tozero"},
        kind=kind,
    )


def _rows(
    groups: pd.DataFrame,
    value: str,
    whiskers: dict[str, Any],
    facts: list[str],
    hover: str,
    *,
    x: dict[str, Any],
    kind: str,
) -> go.Figure:
    figure = go.Figure(
        go.Scatter(
            x=groups[value].to_numpy(),
            y=groups["label"].tolist(),
            mode="markers",
            marker={"color": COLOURS["validation"], "size": 9},
            error_x=whiskers,
            customdata=groups[facts].to_numpy(float),
            hovertemplate=hover,
        )
    )
    y = {"title": kind, "type": "category", "dtick": 1, "autorange": "reversed"}
    return lay_out(figure, height=90 + _ROW * len(groups), x=x, y=y)


def reliability(bins: pd.DataFrame, n_bins: int = N_BINS) -> go.Figure:
    """Draw the share right over the confidence, bin by bin, with counts and 95% intervals.

    The diagonal is a model whose confidence can be taken at its word. n_bins: with empty ones.
    """
    share = bins["accuracy"].to_numpy()
    facts = ["low", "high", "n", "n_right", "confidence"]
    figure = go.Figure(
        [
            go.Bar(
                x=((bins["low"] + bins["high"]) / 2).tolist(),
                y=share,
                width=0.92 / n_bins,
                marker={"color": COLOURS["validation"], "opacity": 0.75},
                error_y=between(share, bins[["least", "most"]].to_numpy()),
                text=[f"{n:,}" for n in bins["n"]],
                textposition="inside",
                insidetextanchor="start",
                textangle=0,
                constraintext="none",
                customdata=list(bins[facts].itertuples(index=False, name=None)),
                hovertemplate=Paragraph("figures/calibration"),
                showlegend=False,
            ),
            go.Scatter(
                x=[0, 1],
                y=[0, 1],
                mode="lines",
                line={"color": GREY, "dash": "dash", "width": 2},
                name=N_("perfectly calibrated"),
                hoverinfo="skip",
            ),
        ]
    )
    x = {"title": N_("confidence"), "range": [0, 1], "tickformat": ".0%"}
    y = {"title": N_("share right"), "range": [0, 1.02], "tickformat": ".0%"}
    return lay_out(figure, height=350, top=36, x=x, y=y)


def between(share: npt.NDArray[np.float64], ends: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return the error bars of shares (n,) whose intervals are ends (n, 2)."""
    return error_bars(ends[:, 1] - share, share - ends[:, 0], thickness=1.5)
