"""All parameters of a model as areas, module within module."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from tfm_core.facts.parameter_table import ParameterRow
from tfm_core.plots.palette import BACKGROUNDS, COLOURS, GREY, INKS, OCHRE, ThemeName
from tfm_core.sentences import N_

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
        parts = row.here.split(".")
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
