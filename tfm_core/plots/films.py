"""Figures that play: words that move while they are learned, and features in a plane.

Each word in turn takes the side of its point where it covers least of the points and of the words
before it: greedy point-feature labelling (Christensen, Marks & Shieber 1995, section 4).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.text.embeddings import EmbeddingTable
from tfm_core.plots.kinds import lay_out
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, PURPLE, SKY, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, whole_percent


def controls(
    names: Sequence[str],
    *,
    duration: int,
    redraw: bool = False,
) -> dict[str, Any]:
    """Return the layout of controls for frames, named by their steps; the last is shown first.

    duration: of a frame, in milliseconds. redraw: plotly draws anew, as 3-D needs it.
    """
    shown = {"mode": "immediate", "transition": {"duration": 0}}
    slider = {
        "active": len(names) - 1,
        "currentvalue": {"prefix": N_("step {step}", step="")},
        "pad": {"t": 36, "l": 8, "r": 16},
        "x": 0.0,
        "len": 1.0,
        "ticklen": 4,
        "minorticklen": 0,
        "font": {"size": 11},
        "bgcolor": GREY,
        "activebgcolor": BLUE,
        "bordercolor": GREY,
        "steps": [
            {
                "label": name,
                "method": "animate",
                "execute": False,
                "args": [[name], shown | {"frame": {"duration": 0, "redraw": redraw}}],
            }
            for name in names
        ],
    }
    motion = {
        "fromcurrent": False,
        "mode": "immediate",
        "frame": {"duration": duration, "redraw": redraw},
        "transition": {"duration": 0 if redraw else duration - 100, "easing": "cubic-in-out"},
    }
    buttons = {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0.0,
        "y": 1.0,
        "xanchor": "left",
        "yanchor": "bottom",
        "bgcolor": "rgba(125,133,146,0.2)",
        "bordercolor": GREY,
        "pad": {"b": 4},
        "buttons": [
            {"label": label, "method": "animate", "execute": False, "args": list(args)}
            for label, args in ((N_("▶ Play"), (None, motion)), (N_("❚❚ Pause"), ([None], shown)))
        ],
    }
    return {"sliders": [slider], "updatemenus": [buttons]}


_FEATURES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
_COLUMNS, _ROOM = 5, 3.0  # plots in a row, and the width of each; a vector is about 1 long
_TITLE = 1.55  # above the middle of a plot
_PLAY_MS = 250


def planes(
    steps: npt.NDArray[np.int64], vectors: Floats, sparsities: Floats, *, height: int
) -> go.Figure:
    """Draw the vectors (T, S, F, 2) of all features, a plot for each sparsity.

    They are a film, of which the last snapshot is shown first.
    """
    n = len(sparsities)
    middles = _ROOM * np.array([[k % _COLUMNS, -(k // _COLUMNS)] for k in range(n)])
    lengths = np.linalg.norm(vectors, axis=-1)

    def feature(at: int, number: int) -> go.Scatter:
        tips = middles + vectors[at, :, number]
        points = np.full((n, 3, 2), np.nan)  # the middle, the tip, a gap
        points[:, 0], points[:, 1] = middles, tips
        x, y = np.round(points.reshape(-1, 2), 3).T
        colour = _FEATURES[number]
        hover = [
            text
            for k in range(n)
            for text in ("", f"{lengths[at, k, number]:.2f}", "")  # only the tip has one
        ]
        return go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"color": colour, "size": [0, 7, 0] * n, "opacity": 1},
            customdata=hover,
            hovertemplate=N_(
                "feature {n}: length {length}",
                n=number + 1,
                length="%{customdata}<extra></extra>",
            ),
            name=N_("feature {n}", n=number + 1),
        )

    features = range(vectors.shape[2])
    figure = go.Figure([feature(-1, number) for number in features])
    for middle, sparsity in zip(middles, sparsities, strict=True):
        x, y = middle
        figure.add_shape(
            type="circle",
            x0=x - 1,
            x1=x + 1,
            y0=y - 1,
            y1=y + 1,
            line={"color": GREY, "width": 1, "dash": "dot"},
            layer="below",
        )
        words = whole_percent(float(sparsity))
        figure.add_annotation(
            x=x, y=y + _TITLE, text=words, showarrow=False, font={"size": 12, "color": GREY}
        )
    rows = -(-n // _COLUMNS)
    ends_x = [-_ROOM / 2, _ROOM * (_COLUMNS - 0.5)]
    ends_y = [-_ROOM * (rows - 0.5), _ROOM / 2 + 0.4]
    bare = {"visible": False, "constrain": "domain"}
    lay_out(
        figure,
        height=height,
        x={"range": ends_x, **bare},
        y={"range": ends_y, "scaleanchor": "x", **bare},
        top=36,
        showlegend=False,
    )
    names = [f"{step:,}" for step in steps]
    figure.frames = [
        go.Frame(name=name, data=[feature(at, number) for number in features])
        for at, name in enumerate(names)
    ]
    figure.update_layout(controls(names, duration=_PLAY_MS))
    return figure


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
    occupied, chosen, plane = np.empty((0, 4)), [], np.array([[0, 0, *size]])
    for middle, word in zip(middles, words, strict=True):
        extent = np.array([width(word), _LINE])
        away = np.array(list(SIDES.values())) * (extent + _MARKER) / 2
        candidates = _boxes(middle + away, np.tile(extent, (len(SIDES), 1)))
        areas = (candidates[:, 2:] - candidates[:, :2]).prod(1)
        outside = areas - _overlap(candidates, plane)
        covered = _overlap(candidates, markers) + _WORSE * (
            _overlap(candidates, occupied) + outside
        )
        best = int(np.argmin(covered))
        occupied = np.vstack([occupied, candidates[best]])
        chosen.append(list(SIDES)[best])
    return chosen


def width(word: str) -> float:
    """Estimate the width of a word in pixels; Korean letters are wide."""
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(c) in "WF" else _LETTER for c in word)


def _boxes(middles: Floats, extents: Floats) -> Floats:
    return np.hstack([middles - extents / 2, middles + extents / 2])  # (n, 4)


def _overlap(boxes: Floats, others: Floats) -> Floats:
    """Return the pixels that each box (m, 4) shares with others (n, 4), (m,)."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    high = np.minimum(boxes[:, None, 2:], others[:, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(-1).sum(-1))


LOOKS: dict[str, tuple[str, str]] = {  # colour and shape; shapes that exist in 2-D and in 3-D
    N_("people"): (BLUE, "circle"),
    N_("animals"): (BLUE, "square"),
    N_("food"): (BLUE, "diamond"),
    N_("things"): (BLUE, "cross"),
    N_("place"): (SKY, "circle-open"),
    N_("verb, present"): (VERMILION, "circle"),
    N_("verb, past"): (VERMILION, "square-open"),
    N_("adjective"): (ORANGE, "diamond"),
    N_("time"): (GREEN, "square"),
    N_("function word"): (OCHRE, "x"),
    N_("particle or ending"): (PURPLE, "diamond-open"),
    N_("digit"): (BLUE, "circle"),
    N_("letter"): (VERMILION, "square"),
    N_("sign"): (GREEN, "x"),
    N_("word"): (PURPLE, "diamond"),
    N_("special"): (GREY, "x"),
}
_ANGLES = str.maketrans("<>&", "‹›+")
_STEP_MS = 700
_PIXELS = (700.0, 350.0)  # about what the plane of the words takes on a laptop


def projected(
    table: EmbeddingTable,
    components: tuple[Floats, Floats, Floats],
    *,
    in_space: bool = False,
    has_labels: bool = True,
) -> go.Figure:
    """Draw the words of a table on the components, one frame a step; the last one is shown first.

    The axes are the same in every frame, so that only the words move. A slider and two buttons go
    through the training, in the browser.
    """
    mean, directions, explained = components  # of ``embeddings.principal``
    points = np.asarray((table.values - mean) @ directions.T, np.float32)  # (F, V, 3)
    lowest, highest = points.min((0, 1)), points.max((0, 1))
    room = np.maximum(highest - lowest, 1e-6) * 0.08
    low, high = (np.asarray(end, np.float64) for end in (lowest - room, highest + room))
    stands: list[str] = []  # the side of its last point on which each word is written
    if has_labels:
        place = (points[-1] - low) / (high - low)
        stands = sides(place[:, :2], table.tokens, size=_PIXELS)

    def groups(at: int) -> list[dict[str, Any]]:
        return [
            _group(table, points[at], name, in_space=in_space, stands=stands)
            for name in LOOKS
            if name in table.classes
        ]

    figure = go.Figure(groups(-1))
    names = [f"{step:,}" for step in table.steps]
    moved = ("type", "name", *("xyz" if in_space else "xy"))  # plotly keeps the rest
    figure.frames = [
        {"name": name, "data": [{key: group[key] for key in moved} for group in groups(at)]}
        for at, name in enumerate(names)
    ]
    shares = [whole_percent(share) for share in explained]
    ends = np.stack([low, high], 1).tolist()
    if in_space:
        axis = {"backgroundcolor": "rgba(0,0,0,0)", "gridcolor": GREY}
        camera = {"eye": {"x": 1.35, "y": 1.35, "z": 0.8}, "center": {"x": 0, "y": 0, "z": -0.15}}
        axes = {
            f"{letter}axis": {**axis, "range": ends[n], "title": {"text": f"{n + 1} ({shares[n]})"}}
            for n, letter in enumerate("xyz")
        }
        figure.update_layout(scene={**axes, "aspectmode": "cube", "camera": camera})
    else:
        for n, letter in enumerate("xy"):
            title = N_("component {n}: {share} of variance", n=n + 1, share=shares[n])
            figure.update_layout({f"{letter}axis": {"range": ends[n], "title": {"text": title}}})
    return figure.update_layout(
        **controls(names, duration=_STEP_MS, redraw=in_space),
        height=680,
        legend={"orientation": "h", "x": 0, "y": -0.28, "yanchor": "top", "font": {"size": 12}},
        margin={"l": 8, "r": 16, "t": 44, "b": 8},  # the words of points at the edge have room
    )


def _group(
    table: EmbeddingTable, points: Floats, name: str, *, in_space: bool, stands: Sequence[str]
) -> dict[str, Any]:
    colour, symbol = LOOKS[name]
    indices = [index for index, kind in enumerate(table.classes) if kind == name]
    words = [table.tokens[index] for index in indices]
    if in_space:  # its texts know plotly's markup, but no entities
        words = [word.translate(_ANGLES) for word in words]
    values = {
        "type": "scatter3d" if in_space else "scatter",
        "x": points[indices, 0],
        "y": points[indices, 1],
        "text": [escape(word, quote=False) for word in words],
        "name": name,
        "mode": "markers+text" if stands else "markers",
        "textposition": [stands[index] for index in indices] if stands else "top center",
        "textfont": {"size": 11},
        "marker": {"color": colour, "symbol": symbol, "size": 5 if in_space else 9},
    }
    if in_space:
        hover = N_(
            "%{{text}} ({group})<br>%{{x:.3f}}, %{{y:.3f}}, %{{z:.3f}}<extra></extra>", group=name
        )
        return {**values, "z": points[indices, 2], "hovertemplate": hover}
    hover = N_("%{{text}} ({group})<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>", group=name)
    return {**values, "hovertemplate": hover, "cliponaxis": False}
