"""Embedding tables as figures: lookup, likeness, and words that move while they are learned.

Each word in turn takes the side of its point where it covers least of the points and of the words
before it: greedy point-feature labelling (Christensen, Marks & Shieber 1995, section 4).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.text.embeddings import CLASSES, EmbeddingTable, Lookup, Projection
from tfm_core.plots.chart import cells
from tfm_core.plots.heads.attention import Theme, short
from tfm_core.plots.palette import (
    BLUE,
    DIVERGING,
    GREEN,
    GREY,
    OCHRE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)
from tfm_core.plots.playing import controls
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, whole_percent

SIDES: dict[str, tuple[float, float]] = {  # plotly's name -> where the word's middle lies, of 1
    "top center": (0, 1),
    "bottom center": (0, -1),
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top right": (1, 1),
    "top left": (-1, 1),
    "bottom right": (1, -1),
    "bottom left": (-1, -1),
}
_LETTER, _WIDE_LETTER, _LINE, _MARKER = 6.0, 11.0, 13.0, 10.0  # pixels
_WORSE = 4.0  # a word is harder to read under another word than over a point
_MAX = 400  # words; more of them cover each other wherever they stand


def sides(points: Floats, words: Sequence[str], *, size: tuple[float, float]) -> list[str]:
    """Return plotly's ``textposition`` of each word.

    points: (n, 2), from 0 to 1 in x and y of the figure. size: its width and height in pixels.
    """
    first = next(iter(SIDES))
    if len(words) > _MAX:
        return [first] * len(words)
    middles = np.asarray(points, np.float64) * np.asarray(size)
    markers = _boxes(middles, np.full((len(words), 2), _MARKER))
    occupied, chosen = np.empty((0, 4)), []
    for middle, word in zip(middles, words, strict=True):
        extent = np.array([width(word), _LINE])
        away = np.array(list(SIDES.values())) * (extent + _MARKER) / 2
        candidates = _boxes(middle + away, np.tile(extent, (len(SIDES), 1)))
        covered = [
            _overlap(box, markers) + _WORSE * (_overlap(box, occupied) + _outside(box, size))
            for box in candidates
        ]
        best = int(np.argmin(covered))
        occupied = np.vstack([occupied, candidates[best]])
        chosen.append(list(SIDES)[best])
    return chosen


def width(word: str) -> float:
    """Estimate the width of a word in pixels; Korean letters are wide."""
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(c) in "WF" else _LETTER for c in word)


def _boxes(middles: Floats, extents: Floats) -> Floats:
    return np.hstack([middles - extents / 2, middles + extents / 2])  # (n, 4)


def _overlap(box: Floats, others: Floats) -> float:
    """Return the pixels that a box (4,) shares with others (n, 4)."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    return float(np.prod(np.clip(high - low, 0, None), axis=1).sum())


def _outside(box: Floats, size: tuple[float, float]) -> float:
    inside = _overlap(box, np.array([[0, 0, *size]]))
    return float(np.prod(box[2:] - box[:2])) - inside


_DIMENSIONS_SHOWN = 8


def likeness(
    like: Floats, tokens: Sequence[str], order: Sequence[int], theme: Theme = "light"
) -> go.Figure:
    """Draw the cosines (V, V) of all words with all, in an order."""
    shown = like[np.ix_(order, order)]
    names = [escape(tokens[index], quote=False) for index in order]
    says = [
        [
            N_("{a} and {b}<br>cosine {value:.4f}", a=a, b=b, value=value)
            for b, value in zip(names, row, strict=True)
        ]
        for a, row in zip(names, shown.tolist(), strict=True)
    ]
    axis = {"names": [short(tokens[index]) for index in order], "constrain": "domain"}
    return cells(
        shown,
        DIVERGING[theme],
        (-1, 1),
        says=says,
        legend=N_("cosine  "),
        gap=0,
        height=500,
        top=52,
        x={"title": N_("word"), "tickangle": -90, **axis},
        y={"title": N_("word"), "scaleanchor": "x", "constraintoward": "top", **axis},
    )


def lookup(table: Floats, looked_up: Lookup, tokens: Sequence[str], theme: Theme) -> go.Figure:
    """Draw a window of the table (V, D) around the row that is looked up, the one-hot beside it.

    The first column is the one-hot vector, the others are the first dimensions of the table.
    """
    first = max(0, min(looked_up.id - 3, len(table) - 7))
    rows = range(first, min(len(table), first + 7))
    shown = table[rows.start : rows.stop, :_DIMENSIONS_SHOWN]
    one_hot = np.array([[float(row == looked_up.id)] for row in rows])
    top = float(np.abs(shown).max())
    values = np.concatenate([one_hot * top, np.full((len(rows), 1), np.nan), shown], 1)
    texts = [
        [f"{hot[0]:.0f}", "", *(f"{v:z.2f}" for v in row)]
        for hot, row in zip(one_hot, shown, strict=True)
    ]
    names = ["one-hot", "", *(str(n + 1) for n in range(shown.shape[1]))]
    return cells(
        values,
        DIVERGING[theme],
        (-top, top),
        says="%{y}<br>%{x}: %{text}<extra></extra>",
        texts=texts,
        height=300,
        x={
            "title": N_(
                "one-hot, and dimensions 1 to {n} of {d_model}",
                n=shown.shape[1],
                d_model=table.shape[1],
            ),
            "names": names,
        },
        y={
            "title": N_("table row: its word"),
            "names": [f"{row}: {short(tokens[row])}" for row in rows],
        },
    )


LOOKS: dict[str, tuple[str, str]] = {  # colour and shape; shapes that exist in 2-D and in 3-D
    "people": (BLUE, "circle"),
    "animals": (BLUE, "square"),
    "food": (BLUE, "diamond"),
    "things": (BLUE, "cross"),
    "place": (SKY, "circle-open"),
    "verb, present": (VERMILION, "circle"),
    "verb, past": (VERMILION, "square-open"),
    "adjective": (ORANGE, "diamond"),
    "time": (GREEN, "square"),
    "function word": (OCHRE, "x"),
    "particle or ending": (PURPLE, "diamond-open"),
    "digit": (BLUE, "circle"),
    "letter": (VERMILION, "square"),
    "sign": (GREEN, "x"),
    "word": (PURPLE, "diamond"),
    "special": (GREY, "x"),
}
_GROUPS = {
    "people": N_("people"),
    "animals": N_("animals"),
    "food": N_("food"),
    "things": N_("things"),
    "place": N_("place"),
    "verb, present": N_("verb, present"),
    "verb, past": N_("verb, past"),
    "adjective": N_("adjective"),
    "time": N_("time"),
    "function word": N_("function word"),
    "particle or ending": N_("particle or ending"),
    "digit": N_("digit"),
    "letter": N_("letter"),
    "sign": N_("sign"),
    "word": N_("word"),
    "special": N_("special"),
}
"""What the legend calls the groups of ``LOOKS``."""
_ANGLES = str.maketrans("<>&", "‹›+")
_STEP_MS = 700
_PIXELS = (700.0, 350.0)  # about what the plane of the words takes on a laptop


def projected(
    table: EmbeddingTable,
    projection: Projection,
    *,
    in_space: bool = False,
    has_labels: bool = True,
) -> go.Figure:
    """Draw the words of a table on the components, one frame a step; the last one is shown first.

    The axes are the same in every frame, so that only the words move. A slider and two buttons go
    through the training, in the browser.
    """
    points = projection.of(table.values)  # (F, V, 3)
    groups = [
        (name, [i for i, kind in enumerate(table.classes) if kind == name])
        for name in CLASSES
        if name in table.classes
    ]
    lowest, highest = points.min((0, 1)), points.max((0, 1))
    room = np.maximum(highest - lowest, 1e-6) * 0.08
    reach = [[float(a), float(b)] for a, b in zip(lowest - room, highest + room, strict=True)]
    draw = partial(
        _group, table, in_space=in_space, sides=_sides(points[-1], table, reach, has_labels)
    )
    figure = go.Figure([draw(points[-1], *group) for group in groups])
    figure.frames = [
        go.Frame(name=f"{step:,}", data=[draw(frame, *group) for group in groups])
        for step, frame in zip(table.steps, points, strict=True)
    ]
    _place_axes(figure, projection, reach, in_space=in_space)
    figure.update_layout(
        **controls([f"{step:,}" for step in table.steps], duration=_STEP_MS, redraw=in_space),
        height=680,
        legend={"orientation": "h", "x": 0, "y": -0.28, "yanchor": "top", "font": {"size": 12}},
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
    )
    return figure


def _group(
    table: EmbeddingTable,
    points: Floats,
    name: str,
    indices: list[int],
    *,
    in_space: bool,
    sides: list[str],
) -> go.Scatter | go.Scatter3d:
    colour, symbol = LOOKS[name]
    words = [_label(table.tokens[index], in_space=in_space) for index in indices]
    values: dict[str, Any] = {
        "x": points[indices, 0],
        "y": points[indices, 1],
        "text": words,
        "name": _GROUPS[name],
        "mode": "markers+text" if sides else "markers",
        "textposition": [sides[index] for index in indices] if sides else "top center",
        "textfont": {"size": 11},
        "marker": {"color": colour, "symbol": symbol, "size": 5 if in_space else 9},
    }
    if in_space:
        hover = N_(
            "%{{text}} ({group})<br>%{{x:.3f}}, %{{y:.3f}}, %{{z:.3f}}<extra></extra>",
            group=_GROUPS[name],
        )
        return go.Scatter3d(z=points[indices, 2], hovertemplate=hover, **values)
    hover = N_("%{{text}} ({group})<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>", group=_GROUPS[name])
    return go.Scatter(hovertemplate=hover, cliponaxis=False, **values)


def _sides(
    points: Floats, table: EmbeddingTable, reach: list[list[float]], has_labels: bool
) -> list[str]:
    """Return the side of its last point on which each word is written; nothing without words."""
    if not has_labels:
        return []
    low, high = np.array(reach[:2]).T
    return sides((points[:, :2] - low) / (high - low), table.tokens, size=_PIXELS)


def _label(token: str, *, in_space: bool) -> str:
    """Return a token for plotly's markup, which its 3-D texts understand, but without entities."""
    return escape(token.translate(_ANGLES) if in_space else token, quote=False)


def _place_axes(
    figure: go.Figure, projection: Projection, reach: list[list[float]], *, in_space: bool
) -> None:
    titles = [
        N_("component {n} ({share} of the variance)", n=n, share=whole_percent(share))
        for n, share in enumerate(projection.explained, 1)
    ]
    if in_space:
        axis = {"backgroundcolor": "rgba(0,0,0,0)", "gridcolor": GREY}
        camera = {"eye": {"x": 1.35, "y": 1.35, "z": 0.8}, "center": {"x": 0, "y": 0, "z": -0.15}}
        figure.update_layout(
            scene={
                name: {
                    **axis,
                    "range": reach[n],
                    "title": {"text": f"{n + 1} ({whole_percent(projection.explained[n])})"},
                }
                for n, name in enumerate(("xaxis", "yaxis", "zaxis"))
            }
            | {"aspectmode": "cube", "camera": camera}
        )
    else:
        figure.update_xaxes(range=reach[0], title={"text": titles[0]})
        figure.update_yaxes(range=reach[1], title={"text": titles[1]})
