"""Attention maps, attention over patches, and scores of heads.

Query down, key across. Zero is the paper and more ink is more weight, on light and on dark; what
the mask forbids is grey.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.attention.alignment import SCORES
from tfm_core.inspect.attention.maps import MapView
from tfm_core.inspect.knockouts.measure import PRUNED
from tfm_core.plots.chart import DASHES, Look, cells, chart, texts_of
from tfm_core.plots.kinds import (
    HOLES,
    frame,
    layout_of,
    legend_to,
    picture_axes,
    picture_trace,
    reference_line,
)
from tfm_core.plots.palette import COLOURS, GREY, SKY, VERMILION, ThemeName
from tfm_core.plots.writing import marked
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Sentence

if TYPE_CHECKING:
    from pandas import DataFrame

Theme = ThemeName

MANY_KEYS = 40
"""Keys from which on most weights are too small for a scale that ends at 1."""
_STRONG = 99  # per cent of the weights of such a map that its scale tells apart


_STRIP = 4  # so many times wider than high, square cells would be tiny
_FLAT = 300  # pixels, the height of such a map
_MAX_TOKEN = 12
_MAX_TEXTS = 16_384  # cells with a hover text of their own; beyond that the axes' names do


_WEIGHT = (  # of a cell that may be read, and of one that is masked
    # the span marks the number for the animation, which writes another one there while it plays
    N_("{query}<br>{key}<br>weight <span>{w:.4f}</span>"),
    N_("{query}<br>{key}<br>weight <span>{w:.4f}</span> (masked)"),
)
_DIFFERENCE = (
    N_("{query}<br>{key}<br>{one} {a:.4f}<br>{other} {b:.4f}<br>difference {by:+.4f}"),
    N_("{query}<br>{key}<br>{one} {a:.4f}<br>{other} {b:.4f}<br>difference {by:+.4f} (masked)"),
)


def head_map(view: MapView, title: str = "", *, top: float | None = 1.0) -> go.Figure:
    """Draw one head's weights as a heatmap; its cells are square unless the map is a mere strip.

    view: of weights (Q, K), 0 to 1. top: the weight with the most ink; None: see ``top_of``.
    """
    weights = np.asarray(view.weights, np.float32)
    seen = view.seen(weights)
    top = top_of(seen) if top is None else top
    says: Says = N_("query %{y}<br>key %{x}<br>weight %{z:.4f}<extra></extra>")
    if weights.size <= _MAX_TEXTS:
        says = _says(view, _WEIGHT, w=weights)
    legend = legend_to(0, top, largest=float(np.nanmax(seen, initial=0.0)))
    return _map(view, seen, "share", legend, says, title=title, top=80 if title else 48)


def _map(
    view: MapView,
    seen: Floats,
    scale: Literal["share", "signed"],
    legend: dict[str, Any],
    says: Says,
    *,
    title: str = "",
    top: int,
) -> go.Figure:
    """Draw cells (Q, K) with their tokens."""
    is_flat = len(view.key) >= _STRIP * len(view.query)  # few words, many patches
    square = {"scaleanchor": None if is_flat else "x", "constraintoward": "top"}
    return cells(
        seen,
        scale,
        (legend["tickvals"][0], legend["tickvals"][-1]),
        says=says,
        gap=1 if max(seen.shape) <= 32 else 0,
        trace={"colorbar": legend, "showscale": True, "name": legend["title"]["text"]},
        height=_FLAT if is_flat else int(np.clip(160 + 24 * len(view.query), 380, 660)),
        top=top,
        x={
            "title": N_("{key_title} (key)", key_title=view.key_title),
            "names": [_glossed(token, view.glosses) for token in view.key],
            "tickangle": -45,
            "constrain": "domain",
        },
        y={
            "title": N_("{query_title} (query)", query_title=view.query_title),
            "names": [_glossed(token, view.glosses) for token in view.query],
            "constrain": "domain",
            **square,
        },
        title={"text": escape(title, quote=False)},
        plot_bgcolor=HOLES,
    )


def top_of(weights: Floats) -> float:
    """Return the end of a colour scale, never 0, never NaN: the largest weight (..., Q, K).

    Of many keys it is a weight that few exceed: else the only weight of a first row would hide all
    others, which are as small as their rows are long.
    """
    largest = float(np.nanmax(weights, initial=0.0))
    known = weights[np.isfinite(weights)]
    if weights.shape[-1] >= MANY_KEYS and len(known):
        largest = float(np.percentile(known, _STRONG)) or largest
    return largest if largest > 0 else 1.0


def usual_top(weights: Floats) -> float:
    """Return where the scale of weights (..., Q, K) ends if nobody chooses: 1 for few keys."""
    return top_of(weights) if weights.shape[-1] >= MANY_KEYS else 1.0


Says = str | list[list[Sentence]]


def _says(view: MapView, said: tuple[str, str], **values: npt.ArrayLike) -> list[list[Sentence]]:
    """Return a text for each cell. said: templates, if it may be read and if it is masked."""
    queries: list[str] = [escape(words, quote=False) for words in view.query_words or ()]
    queries = queries or [
        N_("query {n}: {name}", n=i, name=escape(name, quote=False))
        for i, name in enumerate(view.query, 1 + view.first[0])
    ]
    keys = [
        N_("key {n}: {name}", n=i, name=escape(token, quote=False))
        for i, token in enumerate(view.key, 1 + view.first[1])
    ]
    templates = np.array(said, object)[1 - view.allowed.astype(int)]
    return texts_of(templates, rows={"query": queries}, columns={"key": keys}, **values)


def _glossed(token: str, glosses: Mapping[str, str]) -> str:
    gloss = glosses.get(token)
    return short(token) if gloss is None else f"{short(token)} <i>{escape(gloss, quote=False)}</i>"


def short(token: str) -> str:
    """Return a token as an axis can carry it: cut where it is long, safe in plotly's markup."""
    cut = token if len(token) <= _MAX_TOKEN else f"{token[: _MAX_TOKEN - 1]}…"
    return escape(marked(cut) if cut.strip(" ") else "␣", quote=False)


def outline_cells(
    figure: go.Figure, cells: npt.NDArray[np.bool_], colour: str, width: float = 2
) -> go.Figure:
    """Draw a frame around every marked cell (Q, K) of the figure's map, all as one shape."""
    inset = 0.44
    path = " ".join(
        f"M {k - inset},{q - inset} L {k + inset},{q - inset} L {k + inset},{q + inset} "
        f"L {k - inset},{q + inset} Z"
        for q, k in np.argwhere(cells)
    )
    if path:
        figure.add_shape(
            type="path",
            path=path,
            line={"color": colour, "width": width},
            fillcolor="rgba(0,0,0,0)",
        )
    return figure


def difference_map(
    left: MapView,
    right: MapView,
    *,
    names: tuple[str, str] = ("first", "second"),
    top: float | None = None,
) -> go.Figure:
    """Draw right minus left as a heatmap with square cells, the scale even around 0.

    left and right: of weights (Q, K); the names are those of the left. names: what the two are, for
    hover and the scale. top: the difference with the most colour; None takes the largest. Grey is
    what both masks forbid. Raises ValueError when shapes do not fit.
    """
    if left.weights.shape != right.weights.shape:
        raise ValueError(
            f"The maps are {left.weights.shape} and {right.weights.shape}; they must be alike."
        )
    first, second = (np.asarray(first_name.weights, np.float32) for first_name in (left, right))
    difference = second - first
    view = replace(
        left, weights=difference, may_attend=left.allowed | right.allowed, query_words=()
    )
    end = top if top is not None else float(np.abs(difference).max(initial=0.0)) or 1.0
    first_name, second_name = (escape(name, quote=False) for name in names)
    says: Says = N_("query %{y}<br>key %{x}<br>%{z:+.4f}<extra></extra>")
    if difference.size <= _MAX_TEXTS:
        says = _says(
            view, _DIFFERENCE, one=first_name, other=second_name, a=first, b=second, by=difference
        )
    legend = legend_to(
        -end, end, N_("{second} minus {first}", second=second_name, first=first_name)
    )
    legend |= {"title": {**legend["title"], "side": "top"}, "len": 0.8}
    return _map(view, view.seen(difference), "signed", legend, says, top=64)


_MAX_WRITTEN = 16  # columns whose cells carry their number


def score_lines(
    frame: DataFrame,
    *,
    chosen: tuple[str, int],
    at_step: int | None = None,
) -> go.Figure:
    """Draw one line a head; the chosen one thick, in the colour of cross-attention.

    frame: of ``alignment.score_over_training``. chosen: module and head
    from 0. at_step: the snapshot that is being looked at.
    Each trace's ``customdata`` is [module, head from 0] at every point, for clicks.
    """
    shown = frame[frame["step"] >= 1].sort_values("step")
    looks: dict[str, Look] = {}
    for (module, head), rows in shown.groupby(["module", "head"], sort=False):
        layer, is_chosen = int(rows["layer"].iloc[0]), (module, head - 1) == chosen
        looks[f"{module} {head}"] = {
            "name": N_("layer {layer}, head {head}", layer=layer, head=int(head)),
            "colour": COLOURS["cross"] if is_chosen else GREY,
            "width": 3 if is_chosen else 1.2,
            "dash": DASHES[(layer - 1) % 4],
            "size": 8 if is_chosen else 4,
            "opacity": 1 if is_chosen else 0.65,
            "legendrank": 1 if is_chosen else 2,
            "customdata": [[module, head - 1]] * len(rows),
        }
    on_top = f"{chosen[0]} {chosen[1] + 1}"
    figure = chart(
        SCORES.table(shown.assign(line=shown["module"] + " " + shown["head"].astype(str))),
        x="step",
        y="share",
        colour="line",
        looks=dict(sorted(looks.items(), key=lambda one: one[0] == on_top)),
        top=8,
        marked=len(shown),
        hovermode="closest",
        showlegend=0 < len(looks) <= 12,
    )
    if len(frame):
        chance = float(frame["chance"].iloc[0])
        reference_line(figure, y=chance, words=N_("uniform attention"))
    if at_step is not None and at_step > 0:
        figure.add_vline(x=at_step, line={"color": GREY, "width": 1})
    return figure


def pruning_curve(curves: DataFrame, measure: str = "accuracy") -> go.Figure:
    """Draw the ordered curve, and random orders as their mean and range.

    curves: the table of ``pruned``. measure: "accuracy", as a share, or "loss", in nats.
    """
    orders = curves.groupby("order").ngroups
    by_count = curves[curves["order"] > 0].groupby("removed")[measure]
    spread = by_count.agg(["mean", "min", "max"]).reset_index()
    ordered = chart(
        PRUNED.table(curves[curves["order"] == 0]),
        x="removed",
        y=measure,
        looks=[{"name": N_("least important first"), "colour": VERMILION, "width": 2.5, "size": 6}],
        across={"range": [-0.3, curves["removed"].max() + 0.3]},
        height=330,
        top=36,
    )
    if spread.empty:
        return ordered
    random = chart(
        PRUNED.table(spread.rename(columns={"mean": measure})),
        "bands",
        x="removed",
        y=measure,
        ends=("min", "max"),
        looks=[{"name": N_("random order, mean"), "colour": GREY, "dash": "dash", "width": 2.5}],
        marked=0,
    )
    random.data[1].update(name=N_("range of {n} random orders", n=orders - 1), showlegend=True)
    return go.Figure([*random.data, *ordered.data], ordered.layout)


def restored_map(
    shares: npt.NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    column_title: str,
) -> go.Figure:
    """Draw what each patch restores, (rows, columns): 0 for nothing, 1 for the whole answer."""
    top = max(1.0, float(np.abs(shares).max(initial=0.0)))
    names = [short(name) for name in columns]
    says = [
        [f"{row}, {name}: {share:.5f}" for name, share in zip(names, line, strict=True)]
        for row, line in zip(rows, shares.tolist(), strict=True)
    ]
    return cells(
        shares,
        "signed",
        (-top, top),
        says=says,
        texts="%{z:.2f}" if len(names) <= _MAX_WRITTEN else "",
        legend="",
        height=140 + 26 * len(rows),
        top=44,
        x={"title": column_title, "names": names, "tickangle": -45},
        y={"names": rows},
        plot_bgcolor=HOLES,
    )


INK = "230, 159, 0"
"""Attention over a picture: red, green, blue."""
OVERLAY = ((0.0, f"rgba({INK}, 0)"), (1.0, f"rgba({INK}, 0.75)"))
COLUMNS = 4
_SIDE, _WORD, _NOTE, _MARGIN = 150, 28, 18, 8  # pixels


def patch_overlay(
    weights: Floats,
    picture: npt.NDArray[np.uint8],
    *,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draw attention over patches onto the picture they were cut from.

    weights: (side, side). picture: uint8 (C, height, width) or (height, width).
    chosen: row and column, from 0, of the patch that asks; it gets an outline.
    """
    figure = cells(
        weights,
        OVERLAY,
        (0, top_of(np.asarray(weights, np.float32))),
        picture=picture,
        says=_patch_hover(weights),
        legend=N_("weight"),
        height=380,
        top=48,
        plot_bgcolor=HOLES,
    )
    if chosen is not None:
        size = picture.shape[-1] / len(weights)
        left, upper = chosen[1] * size - 0.5, chosen[0] * size - 0.5
        ends = (left, upper, left + size, upper + size)
        figure.add_shape(frame(*ends, colour=VERMILION, width=3))
    return figure


def caption_strip(
    maps: Floats,
    picture: npt.NDArray[np.uint8],
    words: Sequence[str],
    boxes: Sequence[Sequence[int] | None],
    *,
    notes: Sequence[str] = (),
) -> go.Figure:
    """Draw a picture for each word, with the attention over its patches.

    maps: (T, side, side). picture: uint8 (C, height, width). boxes: left, top, right, bottom in
    pixels of what a word names, or None; outlined. notes: a few letters for each word, under it.
    """
    rows = max(1, -(-len(words) // COLUMNS))
    below = _WORD + _NOTE * bool(notes)
    height = rows * _SIDE + (rows - 1) * below
    titles = [f"<b>{escape(word)}</b>" for word in words]
    for n, note in enumerate(notes):
        titles[n] += f"<br>{escape(note)}"
    figure = cells(
        maps,
        OVERLAY,
        (0, float(np.max(maps)) or 1.0),
        picture=picture,
        each_says=[
            _patch_hover(weights, escape(word)) for weights, word in zip(maps, words, strict=True)
        ],
        facets=titles,
        n_beside=COLUMNS,
        gaps=(0.03, below / height),
        height=height + below + _MARGIN,
    )
    for n, box in enumerate(boxes):
        if box is not None:
            outline = frame(*(float(edge) - 0.5 for edge in box), colour=SKY, width=2)
            axis = str(n + 1) if n else ""
            figure.add_shape(outline, xref=f"x{axis}", yref=f"y{axis}")
    return figure


def _patch_hover(weights: Floats, word: str = "") -> list[list[Sentence]]:
    """Return what the pointer reads of each patch, and whose weight it is."""
    numbers = range(1, len(weights) + 1)
    template = N_("patch {row},{column}: weight {w:.4f}")
    if word:
        template = N_("{word}<br>patch {row},{column}: weight {w:.4f}")
    places: dict[str, Any] = {"rows": {"row": numbers}, "columns": {"column": numbers}}
    return texts_of(template, **places, w=weights, word=word)


def numbered(
    picture: npt.NDArray[np.uint8],
    boxes: Iterable[Sequence[int]],
    *,
    first: int = 0,
    bad: Collection[int] = (),
) -> go.Figure:
    """Draw a picture (C, height, width) with frames that have numbers, where they are few.

    boxes: left, top, right, bottom in pixels, the last two behind the box. first: the first number.
    bad: boxes, from 0, with another colour and thicker lines.
    """
    shapes, notes = [], []
    for n, box in enumerate(boxes):
        left, top, right, bottom = (float(edge) - 0.5 for edge in box)
        colour, width = (VERMILION, 4) if n in bad else (SKY, 2)
        shapes.append(frame(left, top, right, bottom, colour=colour, width=width))
        text = {"text": f"<b>{n + first}</b>", "font": {"size": 11, "color": "#ffffff"}}
        at_corner = {"x": left, "y": top, "xanchor": "left", "yanchor": "top", "showarrow": False}
        notes.append({**text, **at_corner, "bgcolor": colour})
    x, y = picture_axes(picture.shape[-1])
    trace = {**picture_trace(picture), "hoverinfo": None, "hovertemplate": "%{z}<extra></extra>"}
    layout = layout_of(height=340, x=x, y=y, shapes=shapes)
    return go.Figure(trace, layout | {"annotations": notes if len(notes) <= _MAX_NUMBERED else []})


_MAX_NUMBERED = 64


def patch_weights(weights: Floats, query: int | None, *, has_cls: bool) -> Floats:
    """Return (side, side): what a query pays to each patch.

    weights: (Q, K) of one head. query: its row, or None for the mean of all rows, which is what
    the patches receive. A CLS token in front gets its share too, but stands nowhere in the picture.
    """
    row = weights.astype(np.float32).mean(0) if query is None else weights[query]
    patches = row[1:] if has_cls else row
    side = round(float(np.sqrt(len(patches))))
    return np.asarray(patches, np.float32).reshape(side, side)
