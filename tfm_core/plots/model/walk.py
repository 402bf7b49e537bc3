"""Figures of the walk, and all parameters of a model as areas."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.facts.parameter_table import ParameterRow
from tfm_core.plots.chart import cells
from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import HOLES
from tfm_core.plots.palette import BACKGROUNDS, COLOURS, GREY, INKS, OCHRE, ThemeName
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

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


_KINDS = (  # what a module's name says -> its colour
    ("cross_attention", COLOURS["cross"]),
    ("attention", COLOURS["query"]),
    ("feed_forward", COLOURS["value"]),
    ("norm", GREY),
    ("embedding", COLOURS["key"]),
    ("positions", COLOURS["key"]),
    ("stem", COLOURS["key"]),
    ("output", OCHRE),
    ("head", OCHRE),
)
_FRAMES: dict[ThemeName, str] = {"light": "#e6e3da", "dark": "#2b313b"}  # what only holds others


def treemap(rows: Sequence[ParameterRow], total: int, theme: ThemeName = "light") -> go.Figure:
    """Draw all parameters as areas, module within module; a click goes inside."""
    sizes: dict[str, int] = {}
    for row in rows:
        parts = row.our_name.split(".")
        for depth in range(1, len(parts) + 1):
            path = ".".join(parts[:depth])
            sizes[path] = sizes.get(path, 0) + row.n_parameters
    paths = [path for path, n in sizes.items() if n]
    holders = {"model", *(path.rpartition(".")[0] for path in paths)}
    plain = {path for path in holders if _colour(path) is None}
    shown = ["model", *paths]
    colours = [_FRAMES[theme] if path in plain else _colour(path) or GREY for path in shown]
    inks = [INKS[theme] if path in plain else "#ffffff" for path in shown]
    figure = go.Figure(
        go.Treemap(
            ids=shown,
            labels=["model", *(path.rpartition(".")[2] for path in paths)],
            parents=["", *(path.rpartition(".")[0] or "model" for path in paths)],
            values=[total, *(sizes[path] for path in paths)],
            branchvalues="total",
            marker={"colors": colours, "line": {"color": BACKGROUNDS[theme], "width": 1.5}},
            hovertemplate=N_("%{id}<br>%{value:,} parameters, %{percentRoot:.1%}<extra></extra>"),
            texttemplate="%{label}<br>%{percentRoot:.1%}",
            textfont={"color": inks},
            pathbar={"visible": True, "textfont": {"color": INKS[theme]}},
            tiling={"pad": 2},
        )
    )
    return figure.update_layout(
        height=420,
        margin={"l": 4, "r": 4, "t": 28, "b": 4},
        uniformtext={"minsize": 9, "mode": "hide"},  # smaller words could not be read
    )


def _colour(path: str) -> str | None:
    return next((colour for name, colour in _KINDS if name in path), None)
