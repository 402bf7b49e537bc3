"""A slice of a tensor as a map, the picture with its patches, and what a wrong scale does."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.chart import cells
from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import HOLES
from tfm_core.probe.types import Floats

_MAX_WRITTEN = 200  # cells that carry their number


def tensor_map(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_title: str,
    column_title: str,
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
    is_small = values.size <= _MAX_WRITTEN and max(values.shape) <= 16
    return cells(
        values,
        "share" if is_positive else "signed",
        (0 if is_positive else -largest, largest),
        says=texts,
        texts=(template if words is None else f"%{{text}}<br>{template}") if is_small else "",
        legend="",
        trace={
            "text": words,
            "xgap": 1 if values.shape[1] <= 40 else 0,
            "ygap": 1 if values.shape[0] <= 40 else 0,
        },
        plot_bgcolor=HOLES,
        height=int(np.clip(150 + 24 * len(rows), 230, 480)),
        top=44,
        x={"title": column_title, "names": list(map(_tick, columns)), "tickangle": -45},
        y={"title": row_title, "names": list(map(_tick, rows))},
    )


def _number(value: float, form: str) -> str:
    return "masked" if np.isnan(value) else format(value, form)


def _tick(name: str) -> str:
    return short(name.partition(": ")[2] or name)
