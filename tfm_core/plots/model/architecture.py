"""What a model costs by part, how that grows, and which experts its tokens go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from tfm_core.facts.parameter_table import ParameterRow
from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import DASHES, cells, chart
from tfm_core.plots.heads.attention import short
from tfm_core.plots.palette import (
    COLOURS,
    GREY,
    INKS,
    OCHRE,
    SCALES,
    ThemeName,
)
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

PART_COLOURS = {
    "embedding": COLOURS["key"],
    "recurrence": COLOURS["encoder"],
    "projections": COLOURS["query"],
    "scores": COLOURS["decoder"],
    "cross-attention": COLOURS["cross"],
    "feed-forward": COLOURS["value"],
    "output": OCHRE,
    "weights": COLOURS["query"],
    "gradients": COLOURS["gradient"],
    "optimiser": OCHRE,
    "activations": COLOURS["value"],
}
COSTS = Columns(part=Column(), size=Column(form=",.4g"), value=Column(form=",.4g"))


def bars(values: Mapping[str, float], title: str, labels: Mapping[str, str]) -> go.Figure:
    """Draw each part as a bar with its value. labels: what each part is called."""
    names = [name for name, value in values.items() if value][::-1]
    sizes = [values[name] for name in names]
    columns = {"part": [labels[name] for name in names], "size": sizes}
    look = {
        "colour": [PART_COLOURS.get(name, GREY) for name in names],
        "textposition": "auto",
        "textangle": 0,  # beside a bar too short for it, never on its side
    }
    return chart(
        COSTS.table({**columns, "words": [f"{size:.3g}" for size in sizes]}),
        "bars",
        x="size",
        y="part",
        orientation="h",
        text="words",
        looks=[look],
        labels={"size": title},
    )


def growth(
    xs: Sequence[float],
    parts: Mapping[str, Sequence[float]],
    x_title: str,
    y_title: str,
    labels: Mapping[str, str],
) -> go.Figure:
    """Draw how each part grows along one quantity; both axes are linear, so a square bends.

    labels: what each part is called. Parts that lie on one line share it, with all their names.
    """
    lines: list[tuple[list[str], Sequence[float]]] = []
    for name, values in parts.items():
        same = next((names for names, others in lines if np.allclose(values, others)), None)
        if same is not None:
            same.append(name)
        elif any(values):
            lines.append(([name], values))
    looks = [
        {
            "colour": PART_COLOURS.get(names[-1], GREY),
            "width": 3 if "scores" in names else 2,
            "dash": DASHES[i % len(DASHES)],
        }
        for i, (names, _values) in enumerate(lines)
    ]
    columns = {" = ".join(labels[name] for name in names): line for names, line in lines}
    return chart(
        COSTS.table({"size": xs, **columns}),
        x="size",
        y=[*columns],
        looks=looks,
        labels={"size": x_title, "value": y_title},
        across={"rangemode": "tozero"},
        up={"rangemode": "tozero"},
    )


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
_EDGES: dict[ThemeName, str] = {"light": "#fbfaf7", "dark": "#14171c"}


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
            marker={"colors": colours, "line": {"color": _EDGES[theme], "width": 1.5}},
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


def routes(tokens: Sequence[str], gates: Floats, theme: ThemeName = "light") -> go.Figure:
    """Draw the share (T, E) of each expert in each token; experts are counted from 1."""
    n_experts = gates.shape[1]
    says = [
        [
            N_("{token}, expert {n}: {share}", token=token, n=n, share=f"{share:.2f}")
            for token, share in zip(tokens, shares, strict=True)
        ]
        for n, shares in enumerate(gates.T.tolist(), 1)
    ]
    return cells(
        gates.T,
        SCALES[theme],
        (0, 1),
        says=says,
        height=int(np.clip(130 + 26 * n_experts, 190, 520)),
        x={"title": N_("token"), "names": [short(token) for token in tokens], "tickangle": -45},
        y={"title": N_("expert"), "names": [str(n) for n in range(1, n_experts + 1)]},
    )
