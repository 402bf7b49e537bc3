"""A curve as small as a word: how the accuracy of a run rose."""

from __future__ import annotations

import base64
from html import escape

import numpy as np
import streamlit as st

from pages.i18n import N_, _
from pages.ui import runs_access
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.runs.run import Run

WIDTH, HEIGHT, POINTS = 120, 40, 56
NAME = N_("Accuracy on training batches over the steps, 0 to 100 %")
_INSET = 7  # pictures have round corners, and the dot needs room


def sparkline(run: Run) -> None:
    """Show the accuracy of a run over its steps, 0 to 100 %; a quiet line where there is none."""
    picture = base64.b64encode(svg(run).encode()).decode()
    address = f"data:image/svg+xml;base64,{picture}"
    st.html(  # st.image would add a button for the whole screen, a useless stop
        f'<img class="sparkline" src="{address}" alt="{escape(_(NAME))}" width="{WIDTH}">',
        width="content",
    )


def svg(run: Run) -> str:
    """Return the picture; the x axis is the whole run, so that a young run has a short line."""
    steps = runs_access.curves(run).steps
    total = max(run.status.total_steps, 1)
    x, y = steps["step"], steps["accuracy"]
    known = np.isfinite(y)
    x, y = x[known], y[known]
    left, right, top, bottom = _INSET, WIDTH - _INSET, _INSET, HEIGHT - _INSET
    rows = [
        f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="{GREY}" '
        'stroke-opacity="0.4"/>'
    ]
    if len(x):
        y = _smooth(y)
        keep = np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))
        across = np.clip(x[keep] / total, 0, 1) * (right - left) + left
        up = bottom - np.clip(y[keep], 0, 1) * (bottom - top)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
        colour = COLOURS["train"]
        rows.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        rows.append(f'<circle cx="{across[-1]:.1f}" cy="{up[-1]:.1f}" r="2.5" fill="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(rows)}</svg>'
    )


def _smooth(values: np.ndarray) -> np.ndarray:
    """Mean over a fiftieth of the run to each point's left: batches are noisy."""
    window = max(len(values) // 50, 1)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    starts = np.maximum(np.arange(1, len(values) + 1) - window, 0)
    means: np.ndarray = (sums[1:] - sums[starts]) / (np.arange(1, len(values) + 1) - starts)
    return means
