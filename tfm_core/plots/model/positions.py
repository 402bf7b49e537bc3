"""Positions as figures: waves, matrices, values by distance, tiles of likeness, kinds compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.chart import DASHES, cells, chart, wide
from tfm_core.plots.heads.attention import (
    DIFFERENCE,
    DIVERGING,
    LEGEND,
    SCALES,
    Theme,
    short,
)
from tfm_core.plots.kinds import COLORWAY, HIDDEN, bars, from_zero, lay_out, reference_line, ticks
from tfm_core.plots.palette import BLUE, COLOURS, GREY, HUES, VERMILION
from tfm_core.plots.training.stage import thin
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.positions.position import Style

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
BORDER = N_("trained length")


def waves(table: Floats, pairs: Sequence[int], *, trained: int | None = None) -> go.Figure:
    """Draw pairs of columns of a table (T, D) over the positions: pair i is 2i, a sine, and 2i + 1.

    trained: the longest position of training, drawn as a line where the table goes beyond it.
    """
    lines = []
    for n, pair in enumerate(pairs):
        sine, cosine = 2 * pair, 2 * pair + 1
        for dimension, dash, name in (
            (sine, "solid", N_("dimension {dimension}: sine", dimension=sine)),
            (cosine, "dash", N_("dimension {dimension}: cosine", dimension=cosine)),
        ):
            lines.append(
                go.Scatter(
                    y=np.asarray(table[:, dimension], np.float32),
                    x=np.arange(len(table), dtype=np.int32),
                    name=name,
                    line={"dash": dash, "color": COLORWAY[n % len(COLORWAY)]},
                    hovertemplate=N_(
                        "position %{{x}}, dimension {dimension}: %{{y:.4f}}<extra></extra>",
                        dimension=dimension,
                    ),
                )
            )
    figure = go.Figure(lines)
    lay_out(figure, height=340, top=36, x={"title": N_("position")}, y={"title": N_("value")})
    if trained is not None and trained < len(table):
        figure.add_scatter(
            x=[trained - 0.5, trained - 0.5],
            y=[-1, 1],
            mode="lines",
            line={"color": GREY, "dash": "dot", "width": 2},
            name=N_("trained length, {n}", n=trained),
            hoverinfo="skip",
        )
    return figure


def row(table: Floats, position: int) -> go.Figure:
    """Draw one position of a table (T, D): its value in every dimension, sines and cosines."""
    values = table[position]
    places = np.arange(len(values))
    return chart(
        {
            N_("even dimensions, 2i: sine"): (places[::2], values[::2]),
            N_("odd dimensions, 2i + 1: cosine"): (places[1::2], values[1::2]),
        },
        looks=[
            {"marker": {"symbol": symbol, "size": 5}, "line": {"color": colour, "width": 1}}
            for symbol, colour in (("circle", BLUE), ("diamond", VERMILION))
        ],
        hover=lambda name: N_("dimension %{{x}}: %{{y:.4f}}<extra>{name}</extra>", name=name),
        top=36,
        x={"title": N_("dimension, at position {position}", position=position)},
        y={"title": N_("value")},
    )


def matrix(
    values: Floats,
    x_title: str,
    y_title: str,
    theme: Theme = "light",
    *,
    names: Sequence[str] | None = None,
    is_square: bool = False,
    limit: float | None = None,
    span: tuple[float, float] | None = None,
) -> go.Figure:
    """Draw a matrix with a sign: zero is quiet. names: of both axes, where they are the same.

    limit: where the colours end, to both sides. span: where they begin and end instead, in one hue.
    """
    values = np.asarray(values, np.float32)
    top = float(limit or max(np.abs(values).max(initial=0.0), 1e-9))
    colours = DIVERGING if span is None else SCALES
    shared: dict[str, Any] = {"showgrid": False}
    if names is not None:
        shared |= ticks([short(name) for name in names])
    if is_square:
        shared["constrain"] = "domain"
    square = {"scaleanchor": "x", "constraintoward": "top"} if is_square else {}
    y = {"title": y_title, "autorange": "reversed", **shared, **square}
    hover = f"{y_title} %{{y}}<br>{x_title} %{{x}}<br>%{{z:.4f}}<extra></extra>"
    figure = cells(
        values,
        colours[theme],
        span or (-top, top),
        trace={**_scaled(N_("value")), "hovertemplate": hover},
        height=420,
        top=52,
        x={"title": x_title, **shared},
        y=y,
    )
    # with this bottom margin plotly measures the title from the line, not from the ticks' names
    return figure.update_layout(margin_b=52, xaxis_title_standoff=26)


def _scaled(title: str) -> dict[str, Any]:
    """Return settings of cells without gaps, with their scale above them."""
    legend = {**LEGEND, "title": {**LEGEND["title"], "text": title}}
    return {"showscale": None, "colorbar": legend, "xgap": None, "ygap": None}


def wavelengths(lengths: Floats, n_positions: int) -> go.Figure:
    """Draw wavelengths (pairs,) on a logarithmic axis, with the length of the sequence."""
    last = len(lengths) - 1
    shown = N_("the {n_positions} positions shown", n_positions=n_positions)
    grey = {
        "line": {"color": GREY, "dash": "dot", "width": 1},
        "mode": "lines",
        "hoverinfo": "skip",
    }
    hover = N_("pair %{x}: repeats after %{y:,.1f} positions<extra></extra>")
    return chart(
        {
            N_("wavelength"): (range(len(lengths)), lengths),
            shown: ((0, last), (n_positions, n_positions)),
        },
        marked=64,
        looks=[{"line": {"color": BLUE}, "hovertemplate": hover}, grey],
        top=36,
        x={"title": N_("pair of dimensions")},
        y={"title": N_("wavelength (positions, log)"), "type": "log", "dtick": 1},
    )


def lines_by_offset(
    offsets: Floats | npt.NDArray[np.integer[Any]],
    lines: Mapping[str, Floats],
    y_title: str,
    x_title: str = N_("offset (tokens)"),
) -> go.Figure:
    """Draw named values (n,) over offsets (n,)."""
    return chart(
        wide(offsets, {escape(name, quote=False): values for name, values in lines.items()}),
        "auto",
        looks=[
            {"line": {"color": COLORWAY[i % len(COLORWAY)], "dash": DASHES[i % len(DASHES)]}}
            for i in range(len(lines))
        ],
        hover=lambda label: N_(
            "{x_title} %{{x}}: %{{y:.4f}}<extra>{label}</extra>", x_title=x_title, label=label
        ),
        top=36,
        x={"title": x_title},
        y={"title": y_title},
        showlegend=len(lines) > 1,
    )


def hands(turns: Floats, positions: Sequence[int]) -> go.Figure:
    """Draw pairs of dimensions as the hands of clocks, one clock a pair.

    turns: (positions, pairs), radians. The last position has the strongest hand.
    """
    n_pairs = turns.shape[1]
    figure = go.Figure()
    circle = np.linspace(0, 2 * np.pi, 49)
    for pair in range(n_pairs):
        centre = 2.4 * pair
        figure.add_scatter(
            x=centre + np.cos(circle),
            y=np.sin(circle),
            mode="lines",
            line={"color": GREY, "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_annotation(x=centre, y=-1.35, text=N_("pair {pair}", pair=pair), showarrow=False)
        for row, position in enumerate(positions):
            angle = float(turns[row, pair])
            is_last = row == len(positions) - 1
            figure.add_scatter(
                x=[centre, centre + np.cos(angle)],
                y=[0.0, np.sin(angle)],
                mode="lines+markers",
                marker={"size": [0, 7 if is_last else 4]},
                line={"color": COLOURS["query"], "width": 3 if is_last else 1},
                opacity=1.0 if is_last else 0.25,
                showlegend=False,
                hovertemplate=N_(
                    "position {position}, pair {pair}: turned by {angle:.3f} rad<extra></extra>",
                    position=position,
                    pair=pair,
                    angle=angle,
                ),
            )
    across = [-1.2, 2.4 * (n_pairs - 1) + 1.2]
    y = {"scaleanchor": "x", "range": [-1.6, 1.2], **HIDDEN}
    return lay_out(figure, height=230, x={"range": across, **HIDDEN}, y=y)


CAUSAL = Style("orange", "dot", "star")
"""A causal mask without positions: it too tells the order."""


def style_of(kind: str | None) -> Style:
    """Return the one look that a kind of positions has in every figure; None: the mask alone."""
    return CAUSAL if kind is None else POSITIONS[kind].style


def looks_of(style: Style) -> dict[str, Any]:
    """Return a style as settings of a trace."""
    return {
        "line": {"color": HUES[style.colour], "dash": style.dash},
        "marker": {"symbol": style.marker, "size": 7},
    }


def noticed(changes: Mapping[str, tuple[str | None, float]]) -> go.Figure:
    """Draw how much each model noticed: label -> kind of positions and change, 0 = not at all.

    The kind is None where a causal mask alone, or reading in order, tells where a token stands.
    """
    labels = list(changes)
    values = np.array([value for _, value in changes.values()], np.float32)
    figure = go.Figure(
        bars(
            [escape(label, quote=False).replace(", ", ",<br>") for label in labels],  # phones
            values,
            [HUES[style_of(kind).colour] for kind, _ in changes.values()],
            texts=[f"{100 * value:.3g}%" if value >= 1e-5 else "0: a bag" for value in values],
            hovertemplate="%{y}: %{x:.2e}<extra></extra>",
        )
    )
    end = float(max(values.max(initial=0), 0.01)) * 1.35
    x = {"title": N_("mean change of a vector"), "range": [0, end], "tickformat": ".0%"}
    return lay_out(figure, height=90 + 44 * len(labels), x=x, y={"autorange": "reversed"})


def race(
    series: Mapping[str, tuple[str, Floats, Floats]],
    x_title: str,
    y_title: str,
    *,
    styles: Mapping[str, Style] | None = None,
    trained: float | None = None,
) -> go.Figure:
    """Draw shares (0 to 1) while they are learned: name -> label, x (n,), y (n,); nan is a gap.

    styles: by name; None: the names are kinds of positions. trained: where the trained lengths end,
    drawn as a line.
    """
    shown = {}
    for label, x, y in series.values():
        kept = thin(x, np.nan_to_num(y))
        shown[escape(label, quote=False)] = (np.asarray(x)[kept], np.asarray(y)[kept])
    looks = [(style_of(name) if styles is None else styles[name]) for name in series]
    figure = chart(
        shown,
        marked=40,
        looks=[looks_of(style) for style in looks],
        hover=lambda label: N_(
            "{x_title} %{{x:,}}: %{{y:.1%}}<extra>{label}</extra>", x_title=x_title, label=label
        ),
        top=36,
        x={"title": x_title, **from_zero(x for _label, x, _y in series.values())},
        y={"title": y_title, "range": [0, 1.04], "tickformat": ".0%"},
    )
    if trained is not None:
        reference_line(figure, x=trained, words=BORDER)
    return figure


_GAP = 1  # empty cells between two tiles


def position_tiles(tiles: Floats, theme: Theme = "light") -> go.Figure:
    """Draw one tile a patch, where the patch lies; its cells are the similarities to all patches.

    tiles: (side, side, side, side), cosine similarities, -1 to 1. One heatmap, so that it is quick.
    """
    mosaic, texts = mosaic_of(tiles)
    side = len(tiles)
    pitch = side + _GAP
    centres = [i * pitch + (side - 1) / 2 for i in range(side)]
    axis = {
        "tickmode": "array",
        "tickvals": centres,
        "ticktext": [str(i + 1) for i in range(side)],
        "showgrid": False,
        "zeroline": False,
        "constrain": "domain",
        "automargin": False,
    }
    figure = cells(
        mosaic,
        DIFFERENCE[theme],
        (-1, 1),
        trace={**_scaled(N_("cosine similarity")), **texts},
        height=460,
        x={"title": N_("patch column"), **axis},
        y={"title": N_("patch row"), "autorange": "reversed", "scaleanchor": "x", **axis},
    )
    margin = {"l": 52, "r": 8, "t": 48, "b": 52}
    return figure.update_layout(margin=margin, xaxis_title_standoff=26)


def mosaic_of(tiles: Floats) -> tuple[Floats, dict[str, object]]:
    """Return the tiles in one array with gaps of NaN, and hover texts where they are not too many.

    tiles: (side, side, side, side). Returns ((side * (side + 1) - 1) squared,).
    """
    side = len(tiles)
    pitch = side + _GAP
    size = side * pitch - _GAP
    mosaic = np.full((size, size), np.nan, np.float32)
    texts = np.full((size, size), "", object)
    is_few = side <= 8
    for row in range(side):
        for column in range(side):
            top, left = row * pitch, column * pitch
            mosaic[top : top + side, left : left + side] = tiles[row, column]
            if is_few:
                texts[top : top + side, left : left + side] = _texts(
                    tiles[row, column], row, column
                )
    if not is_few:
        return mosaic, {"hovertemplate": N_("%{z:.2f}<extra></extra>")}
    return mosaic, {"hovertext": texts.tolist(), "hoverinfo": "text"}


def _texts(tile: Floats, row: int, column: int) -> list[list[str]]:
    return [
        [
            N_(
                "patch {row},{column} and patch {other_row},{other_column}"
                "<br>similarity {value:.3f}",
                row=row + 1,
                column=column + 1,
                other_row=r + 1,
                other_column=c + 1,
                value=value,
            )
            for c, value in enumerate(values)
        ]
        for r, values in enumerate(tile.tolist())
    ]
