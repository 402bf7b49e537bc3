"""A slice of a tensor as a map, the picture with its patches, and what a wrong scale does."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.config.shape import patches_per_side
from tfm_core.plots.chart import chart, wide
from tfm_core.plots.heads.attention import LEGEND, MASKED, SCALES, Theme, short
from tfm_core.plots.heads.patches import picture_trace
from tfm_core.plots.kinds import lay_out, picture_axes, ticks
from tfm_core.plots.palette import BLUE, GREY, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_
from tfm_core.variants import forms

# Two hues that every kind of colour vision tells apart, with the paper between them.
AROUND_ZERO: dict[Theme, tuple[str, ...]] = {
    "light": ("#7a3803", "#d55e00", "#f6f4ee", "#2f7fc1", "#08306b"),
    "dark": ("#ffc08a", "#d55e00", "#1a1e25", "#3f95d6", "#d8ecfb"),
}
_MAX_WRITTEN = 200  # cells that carry their number
_MAX_TICKS = 32


def tensor_map(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_title: str,
    column_title: str,
    theme: Theme = "light",
    is_whole_number: bool = False,
    words: Sequence[Sequence[str]] | None = None,
) -> go.Figure:
    """Draw (rows, columns) as a heatmap; the exact value is in the hover, NaN means masked.

    words: the word of each number, written in its cell.

    Values from 0 on are drawn in one hue, others in two around zero.
    """
    values = np.asarray(values, np.float64)
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    is_positive = not (np.nan_to_num(values) < 0).any()
    form = ".0f" if is_whole_number else ".6g"
    texts_in = words or [[""] * len(columns)] * len(rows)
    places = columns if words is None else [name.partition(": ")[0] for name in columns]
    texts = [
        [
            "<br>".join(
                part
                for part in (escape(r), escape(c), escape(word), f"<b>{_number(v, form)}</b>")
                if part
            )
            for c, word, v in zip(places, line_said, line, strict=True)
        ]
        for r, line_said, line in zip(rows, texts_in, values.tolist(), strict=True)
    ]
    template = "%{z:.0f}" if is_whole_number else "%{z:.2f}"
    template = template if words is None else f"%{{text}}<br>{template}"
    is_small = values.size <= _MAX_WRITTEN and max(values.shape) <= 16
    # the whole layout at once: plotly takes milliseconds for each update of a figure
    return go.Figure(
        go.Heatmap(
            z=values.astype(np.float32),
            zmin=0 if is_positive else -largest,
            zmax=largest,
            colorscale=list((SCALES if is_positive else AROUND_ZERO)[theme]),
            colorbar={
                **LEGEND,
                "title": {"text": ""},
                "tickmode": "array",
                "tickvals": [0, largest / 2, largest] if is_positive else [-largest, 0, largest],
            },
            hovertext=texts,
            hoverinfo="text",
            text=words,
            texttemplate=template if is_small else None,
            textfont={"size": 10},
            xgap=1 if values.shape[1] <= 40 else 0,
            ygap=1 if values.shape[0] <= 40 else 0,
        ),
        {
            "plot_bgcolor": MASKED[theme],
            "height": int(np.clip(150 + 24 * len(rows), 230, 480)),
            "margin": {"l": 8, "r": 8, "t": 44, "b": 8},
            "xaxis": {"title": {"text": column_title}, **_ticks(columns), "tickangle": -45},
            "yaxis": {"title": {"text": row_title}, "autorange": "reversed", **_ticks(rows)},
        },
    )


def _number(value: float, form: str) -> str:
    return "masked" if np.isnan(value) else format(value, form)


def _ticks(names: Sequence[str]) -> dict[str, Any]:
    every = -(-len(names) // _MAX_TICKS)
    shown = range(0, len(names), every)
    texts = [short(names[i].partition(": ")[2] or names[i]) for i in shown]
    return {**ticks(texts), "tickvals": list(shown), "tickfont": {"size": 11}}


def cut_picture(
    picture: npt.NDArray[np.uint8], patch_size: int, theme: Theme = "light"
) -> go.Figure:
    """Draw a picture (C, height, width) with the borders and the numbers of its patches, from 0."""
    size = picture.shape[-1]
    per_side = patches_per_side(size, patch_size)
    shown = picture_trace(picture).update(hoverinfo=None, hovertemplate="%{z}<extra></extra>")
    figure = go.Figure(shown)
    for i in range(per_side + 1):
        at = i * patch_size - 0.5
        line = {"color": VERMILION, "width": 2}
        figure.add_shape(type="line", x0=at, x1=at, y0=-0.5, y1=size - 0.5, line=line)
        figure.add_shape(type="line", y0=at, y1=at, x0=-0.5, x1=size - 0.5, line=line)
    if per_side <= 8:
        for number in range(per_side**2):
            row, column = divmod(number, per_side)
            figure.add_annotation(
                x=column * patch_size - 0.5,
                y=row * patch_size - 0.5,
                text=f"<b>{number}</b>",
                showarrow=False,
                xanchor="left",
                yanchor="top",
                bgcolor=VERMILION,
                font={"size": 10, "color": "#ffffff"},
            )
    x, y = picture_axes(size)
    return lay_out(figure, height=340, x=x, y=y)


def entropies(
    right: Floats,
    wrong: Floats,
    most: Floats,
    queries: Sequence[str],
    mistake: str = "sqrt-d-model",
) -> go.Figure:
    """Draw the entropy (Q,) of each query's weights in bits, with the right and the wrong scale.

    mistake: the wrong scale, a name of SCALES.
    """
    width = forms.SCALES[mistake].width
    scale_name = f"/ sqrt({width})" if width else N_("not scaled")
    lines = {
        N_("equal shares, log2 of the keys"): most,
        N_("{scale}, the mistake", scale=scale_name): wrong,
        "/ sqrt(d_head)": right,
    }
    looks = ({"color": GREY, "dash": "dot"}, {"color": VERMILION, "dash": "dash"}, {"color": BLUE})
    return chart(
        wide(range(len(queries)), lines),
        looks=[{"line": look} for look in looks],
        hover=N_("%{y:.4f} bits"),
        height=320,
        top=70,
        x={"title": N_("query token"), "tickangle": -45, **ticks(list(map(short, queries)))},
        y={"title": N_("entropy (bits)"), "rangemode": "tozero"},
        hovermode="x unified",
    )
