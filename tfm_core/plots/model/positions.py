"""Positions as figures: waves, matrices, values by distance, tiles of likeness, kinds compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.heads.attention import DIFFERENCE, DIVERGING, LEGEND, SCALES, Theme, short
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
    figure = _axes(go.Figure(lines), {"title": N_("position")}, {"title": N_("value")})
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
    values = np.asarray(table[position], np.float32)
    figure = go.Figure(
        [
            go.Scatter(
                x=np.arange(start, len(values), 2, dtype=np.int32),
                y=values[start::2],
                name=name,
                mode="lines+markers",
                marker={"symbol": symbol, "size": 5},
                line={"color": colour, "width": 1},
                hovertemplate=N_("dimension %{{x}}: %{{y:.4f}}<extra>{name}</extra>", name=name),
            )
            for start, name, symbol, colour in (
                (0, N_("even dimensions, 2i: sine"), "circle", BLUE),
                (1, N_("odd dimensions, 2i + 1: cosine"), "diamond", VERMILION),
            )
        ]
    )
    title = N_("dimension, at position {position}", position=position)
    return _axes(figure, {"title": title}, {"title": N_("value")})


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
    least, most = span or (-top, top)
    colours = DIVERGING if span is None else SCALES
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=least,
            zmax=most,
            colorscale=list(colours[theme]),
            colorbar={**LEGEND, "title": {**LEGEND["title"], "text": N_("value")}},
            hovertemplate=f"{y_title} %{{y}}<br>{x_title} %{{x}}<br>%{{z:.4f}}<extra></extra>",
        )
    )
    shared: dict[str, Any] = {"showgrid": False}
    if names is not None:
        shared |= ticks([short(name) for name in names])
    if is_square:
        shared["constrain"] = "domain"
    square = {"scaleanchor": "x", "constraintoward": "top"} if is_square else {}
    y = {"title": y_title, "autorange": "reversed", **shared, **square}
    lay_out(figure, height=420, top=52, x={"title": x_title, **shared}, y=y)
    # with this bottom margin plotly measures the title from the line, not from the ticks' names
    return figure.update_layout(margin_b=52, xaxis_title_standoff=26)


def wavelengths(lengths: Floats, n_positions: int) -> go.Figure:
    """Draw wavelengths (pairs,) on a logarithmic axis, with the length of the sequence."""
    figure = go.Figure(
        go.Scatter(
            x=np.arange(len(lengths), dtype=np.int32),
            y=np.asarray(lengths, np.float32),
            mode="lines+markers" if len(lengths) <= 64 else "lines",
            line={"color": BLUE},
            name=N_("wavelength"),
            hovertemplate=N_("pair %{x}: repeats after %{y:,.1f} positions<extra></extra>"),
        )
    )
    figure.add_scatter(
        x=[0, len(lengths) - 1],
        y=[n_positions, n_positions],
        mode="lines",
        line={"color": GREY, "dash": "dot", "width": 1},
        name=N_("the {n_positions} positions shown", n_positions=n_positions),
        hoverinfo="skip",
    )
    y = {"title": N_("wavelength (positions, log)"), "type": "log", "dtick": 1}
    return _axes(figure, {"title": N_("pair of dimensions")}, y)


def lines_by_offset(
    offsets: Floats | npt.NDArray[np.integer[Any]],
    lines: Mapping[str, Floats],
    y_title: str,
    x_title: str = N_("offset (tokens)"),
) -> go.Figure:
    """Draw named values (n,) over offsets (n,)."""
    figure = go.Figure(
        [
            go.Scatter(
                x=offsets,
                y=np.asarray(values, np.float32),
                name=escape(name, quote=False),
                line={"color": COLORWAY[i % len(COLORWAY)], "dash": _DASHES[i % 6]},
                hovertemplate=N_(
                    "{x_title} %{{x}}: %{{y:.4f}}<extra>{label}</extra>",
                    x_title=x_title,
                    label=escape(name),
                ),
            )
            for i, (name, values) in enumerate(lines.items())
        ]
    )
    figure.layout.showlegend = len(lines) > 1
    return _axes(figure, {"title": x_title}, {"title": y_title})


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


def _axes(figure: go.Figure, x: dict[str, Any], y: dict[str, Any]) -> go.Figure:
    return lay_out(figure, height=340, top=36, x=x, y=y)


CAUSAL = Style("orange", "dot", "star")
"""A causal mask without positions: it too tells the order."""


def style_of(kind: str | None) -> Style:
    """Return the one look that a kind of positions has in every figure; None: the mask alone."""
    return CAUSAL if kind is None else POSITIONS[kind].style


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
    trained: float | None = None,
) -> go.Figure:
    """Draw shares (0 to 1): kind of positions -> label, x (n,), y (n,); nan leaves a gap.

    trained: where the trained lengths end, drawn as a line.
    """
    figure = go.Figure()
    for kind, (label, x, y) in series.items():
        own = style_of(kind)
        kept = thin(x, np.nan_to_num(y))
        figure.add_scatter(
            x=np.asarray(x, np.float32)[kept],
            y=np.asarray(y, np.float32)[kept],
            name=escape(label, quote=False),
            mode="lines+markers" if len(kept) <= 40 else "lines",
            line={"color": HUES[own.colour], "dash": own.dash},
            marker={"symbol": own.marker, "size": 7},
            hovertemplate=N_(
                "{x_title} %{{x:,}}: %{{y:.1%}}<extra>{label}</extra>",
                x_title=x_title,
                label=escape(label),
            ),
        )
    if trained is not None:
        reference_line(figure, x=trained, words=BORDER)
    x_axis = {"title": x_title, **from_zero(x for _label, x, _y in series.values())}
    return _axes(figure, x_axis, {"title": y_title, "range": [0, 1.04], "tickformat": ".0%"})


_GAP = 1  # empty cells between two tiles


def position_tiles(tiles: Floats, theme: Theme = "light") -> go.Figure:
    """Draw one tile a patch, where the patch lies; its cells are the similarities to all patches.

    tiles: (side, side, side, side), cosine similarities, -1 to 1. One heatmap, so that it is quick.
    """
    mosaic, texts = mosaic_of(tiles)
    side = len(tiles)
    pitch = side + _GAP
    figure = go.Figure(
        go.Heatmap(
            z=mosaic,
            zmin=-1,
            zmax=1,
            colorscale=list(DIFFERENCE[theme]),
            colorbar={**LEGEND, "title": {**LEGEND["title"], "text": N_("cosine similarity")}},
            **texts,
        )
    )
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
    figure.update_layout(height=460, margin={"l": 52, "r": 8, "t": 48, "b": 52})
    figure.update_xaxes(title={"text": N_("patch column"), "standoff": 26}, **axis)
    figure.update_yaxes(
        title={"text": N_("patch row")}, autorange="reversed", scaleanchor="x", **axis
    )
    return figure


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
