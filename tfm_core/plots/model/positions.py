"""Positions as figures: waves, matrices, values by distance, tiles of likeness, kinds compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tfm_core.choices.variants.positions import POSITIONS, Style
from tfm_core.inspect.positions_at_work import CHANGES, RACE
from tfm_core.plots.chart import Look, cells, chart, texts_of
from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import HIDDEN, lay_out
from tfm_core.plots.palette import COLOURS, GREY, HUES
from tfm_core.plots.training.curves import thin
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_


def matrix(
    values: Floats,
    x_title: str,
    y_title: str,
    *,
    names: Sequence[str] | None = None,
    is_square: bool = False,
    limit: float | None = None,
    span: tuple[float, float] | None = None,
) -> go.Figure:
    """Draw a matrix with a sign: zero is quiet. names: of both axes, where they are the same.

    limit: where the colours end, to both sides. span: where they begin and end instead, in one hue.
    """
    top = float(limit or max(np.abs(values).max(initial=0.0), 1e-9))
    axis = {} if names is None else {"names": [short(name) for name in names]}
    square: dict[str, Any] = {"constrain": "domain"} if is_square else {}
    down = {"scaleanchor": "x", "constraintoward": "top"} if is_square else {}
    figure = cells(
        values,
        "signed" if span is None else "share",
        span or (-top, top),
        says=f"{y_title} %{{y}}<br>{x_title} %{{x}}<br>%{{z:.4f}}<extra></extra>",
        legend=N_("value"),
        gap=0,
        height=420,
        top=52,
        x={"title": x_title, **axis, **square},
        y={"title": y_title, **axis, **square, **down},
    )
    # with this bottom margin plotly measures the title from the line, not from the ticks' names
    return figure.update_layout(margin_b=52, xaxis_title_standoff=26)


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
            x, y = [centre, centre + np.cos(angle)], [0.0, np.sin(angle)]
            figure.add_scatter(
                x=x,
                y=y,
                mode="lines+markers",
                marker={"size": [0, 7 if is_last else 4]},
                line={"color": COLOURS["query"], "width": 3 if is_last else 1},
                opacity=1.0 if is_last else 0.25,
                showlegend=False,
                hovertemplate=N_(
                    "position {position}, pair {pair}: rotated by {angle:.3f} rad<extra></extra>",
                    position=position,
                    pair=pair,
                    angle=angle,
                ),
            )
    across = [-1.2, 2.4 * (n_pairs - 1) + 1.2]
    up = {"scaleanchor": "x", "range": [-1.6, 1.2], **HIDDEN}
    return lay_out(figure, height=230, x={"range": across, **HIDDEN}, y=up)


CAUSAL = Style("orange", "dot", "star")
"""A causal mask without positions: it too tells the order."""


def style_of(kind: str | None) -> Style:
    """Return the one look that a kind of positions has in every figure; None: the mask alone."""
    return CAUSAL if kind is None else POSITIONS[kind].style


def looks_of(style: Style) -> Look:
    """Return a style as the look of a series."""
    colour = HUES[style.colour]
    return {"colour": colour, "dash": style.dash, "symbol": style.marker, "size": 7}


def noticed(changes: Mapping[str, tuple[str | None, float]]) -> go.Figure:
    """Draw how much each model noticed: label -> kind of positions and change, 0 = not at all.

    The kind is None where a causal mask alone, or reading in order, tells where a token stands.
    """
    labels, values = list(changes), [value for _kind, value in changes.values()]
    table = CHANGES.table(
        {
            "model": [
                escape(label, quote=False).replace(", ", ",<br>") for label in labels
            ],  # phones
            "change": values,
            "words": [f"{100 * value:.3g}%" if value >= 1e-5 else "0: a bag" for value in values],
        }
    )
    return chart(
        table,
        "bars",
        x="change",
        y="model",
        orientation="h",
        text="words",
        looks=[{"colour": [HUES[style_of(kind).colour] for kind, _value in changes.values()]}],
        across={"range": [0, 1.35 * max(*values, 0.01)]},
    )


def race(
    series: Mapping[str, tuple[str, Floats, Floats]],
    column: str,
    title: str,
    *,
    styles: Mapping[str, Style] | None = None,
    trained: float | None = None,
) -> go.Figure:
    """Draw shares (0 to 1) while they are learned: name -> label, x (n,), y (n,); nan is a gap.

    column: of the places, in RACE. styles: by name; None: the names are kinds of positions.
    trained: where the trained lengths end, drawn as a line.
    """
    parts = []
    for label, x, y in series.values():
        kept = thin(x, np.nan_to_num(y))
        parts.append((escape(label, quote=False), np.asarray(x)[kept], np.asarray(y)[kept]))
    names, places, shares = zip(*parts, strict=True)
    ends = np.unique(np.concatenate(places))
    values = {column: np.concatenate(places), "right": np.concatenate(shares)}
    return chart(
        RACE.table({**values, "model": np.repeat(names, [len(x) for x in places])}),
        x=column,
        y="right",
        colour="model",
        looks=[looks_of(style_of(name) if styles is None else styles[name]) for name in series],
        labels={"right": title},
        across={"range": [0, 2 * ends[0] or 1]} if len(ends) == 1 else {},  # plotly's begins at -1
        reference=None if trained is None else {"x": trained, "words": N_("trained length")},
    )


_GAP = 1  # empty cells between two tiles
_MAX_WORDS = 8  # patches to a side whose cells have texts of their own


def position_tiles(tiles: Floats) -> go.Figure:
    """Draw one tile a patch, where the patch lies; its cells are the similarities to all patches.

    tiles: (side, side, side, side), cosine similarities, -1 to 1. One heatmap, so that it is quick.
    """
    mosaic, says = mosaic_of(tiles)
    side = len(tiles)
    pitch = side + _GAP
    centres = [i * pitch + (side - 1) / 2 for i in range(side)]
    axis = {
        "tickmode": "array",
        "tickvals": centres,
        "ticktext": [str(i + 1) for i in range(side)],
        "constrain": "domain",
        "automargin": False,
    }
    figure = cells(
        mosaic,
        "signed",
        (-1, 1),
        says=says,
        legend=N_("cosine similarity"),
        gap=0,
        height=460,
        x={"title": N_("patch column"), **axis},
        y={"title": N_("patch row"), "scaleanchor": "x", **axis},
    )
    margin = {"l": 52, "r": 8, "t": 48, "b": 52}
    return figure.update_layout(margin=margin, xaxis_title_standoff=26)


def mosaic_of(tiles: Floats) -> tuple[Floats, str | list[list[str]]]:
    """Return the tiles in one array with gaps of NaN, and hover texts where they are not too many.

    tiles: (side, side, side, side). Returns ((side * (side + 1) - 1) squared,).
    """
    side = len(tiles)
    pitch = side + _GAP
    size = side * pitch - _GAP
    mosaic = np.full((size, size), np.nan, np.float32)
    texts = np.full((size, size), "", object)
    numbers = range(1, side + 1)
    for row, column in np.ndindex(side, side):
        top, left = row * pitch, column * pitch
        place = slice(top, top + side), slice(left, left + side)
        mosaic[place] = tiles[row, column]
        if side <= _MAX_WORDS:
            texts[place] = texts_of(
                N_(
                    "patch {row},{column} and patch {other_row},{other_column}"
                    "<br>similarity {value:.3f}"
                ),
                rows={"other_row": numbers},
                columns={"other_column": numbers},
                row=row + 1,
                column=column + 1,
                value=tiles[row, column],
            )
    if side > _MAX_WORDS:
        return mosaic, N_("%{z:.2f}<extra></extra>")
    return mosaic, texts.tolist()
