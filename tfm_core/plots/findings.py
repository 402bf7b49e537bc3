"""The findings: features in a plane, the roles of heads, a small adder, and addition modulo n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.attention.heads import SPREAD
from tfm_core.plots.chart import bands_of, cells, chart
from tfm_core.plots.kinds import lay_out, pale
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.palette import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    OCHRE,
    ORANGE,
    PURPLE,
    SCALES,
    SKY,
    VERMILION,
    ThemeName,
)
from tfm_core.plots.playing import controls
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_, Sentence, whole_percent
from tfm_core.studies.adder import CARRY
from tfm_core.studies.specialise import NONE, WORDS, heads
from tfm_core.studies.superposition import SHARES

_MAX_DOTS = 60  # of each total
_ROW, _AROUND = 26, 90  # pixels


def carry(table: pd.DataFrame, *, height: int) -> go.Figure:
    """Draw how much of the carry each column has, by what the column before came to.

    table: of ``carry_of``: read, about 0 without and 1 with a carry; before, 0 to 3.
    """
    dots = table.groupby("before").head(_MAX_DOTS).sort_values("before", kind="stable")
    each = dots.groupby("before")["read"]
    spread = -0.3 + 0.6 * each.cumcount() / (each.transform("size") - 1).clip(lower=1)
    names = (dots["before"] >= 2).map({False: "no carry", True: "carry"})
    return chart(
        CARRY.table(dots.assign(before=dots["before"] + spread, name=names)),
        "points",
        x="before",
        y="read",
        colour="name",
        looks={
            "no carry": {"name": N_("no carry"), "colour": BLUE, "size": 5},
            "carry": {"name": N_("carry"), "colour": VERMILION, "size": 5},
        },
        reference={"y": 0.5, "words": N_("threshold")},
        height=height,
    )


def small_map(
    values: Floats, rows: Sequence[str], columns: Sequence[str], theme: ThemeName
) -> go.Figure:
    """Draw a few numbers (rows, columns) as a map that carries them, without a scale."""
    figure = tensor_map(values, rows, columns, row_title="", column_title="", theme=theme)
    figure.update_traces(showscale=False)
    return figure.update_layout(
        height=_AROUND + _ROW * len(rows), margin={"l": 4, "r": 4, "t": 4, "b": 4}
    )


STATES = (N_("new, wrong"), N_("new, right"), N_("trained, wrong"), N_("trained, right"))
_COLOURS = (pale(GREY, 0.3), pale(GREEN, 0.5), GREY, GREEN)  # the trained ones are darker


def sums(is_right: Bools, is_trained: Bools, *, height: int) -> go.Figure:
    """Draw all sums (n, n): which were trained, and which the model gets right."""
    state = 2 * is_trained.astype(np.int8) + is_right
    word = "%{customdata}<extra></extra>"
    hover = N_("{a} + {b}: {state}", a="%{y}", b="%{x}", state=word)
    words = np.array(STATES, object)[state]
    figure = cells(
        state,
        bands_of(_COLOURS),
        (-0.5, len(_COLOURS) - 0.5),
        height=height,
        top=30,
        says=hover,
        gap=0,
        x={"title": N_("b"), "constrain": "domain"},
        y={"title": N_("a"), "scaleanchor": "x"},
        trace={"customdata": words},
    )
    for name, colour in zip(STATES, _COLOURS, strict=True):
        _add_legend(figure, name, colour)
    return figure


def _add_legend(figure: go.Figure, name: str, colour: str) -> None:
    """Add the name of a colour to the legend of a figure."""
    marker = {"color": colour, "symbol": "square", "size": 10}
    figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)


def frequencies(
    steps: npt.NDArray[np.int64],
    shares: npt.NDArray[np.floating[Any]],
    *,
    height: int,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the share (S, K) of each frequency, from 1, in the power of the embedding."""
    share = "%{z:.1%}<extra></extra>"
    hover = N_("step {step}, frequency {k}: {share}", step="%{x}", k="%{y}", share=share)
    places = {"x": steps, "y": np.arange(1, shares.shape[1] + 1)}
    return cells(
        shares.T,
        SCALES[theme],
        (0, float(shares.max(initial=0))),
        height=height,
        says=hover,
        gap=0,
        x={"title": N_("step"), "range": [int(steps[0]), int(steps[-1])]},
        y={"title": N_("frequency"), "autorange": True},
        trace=places,
    )


_FEATURES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
_COLUMNS, _ROOM = 5, 3.0  # plots in a row, and the width of each; a vector is about 1 long
_TITLE = 1.55  # above the middle of a plot
_PLAY_MS = 250


def planes(
    steps: npt.NDArray[np.int64], vectors: Floats, sparsities: Floats, *, height: int
) -> go.Figure:
    """Draw the vectors (T, S, F, 2) of all features, a plot for each sparsity.

    Several snapshots become a film, of which the last one is shown first.
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
    if len(steps) > 1:
        names = [f"{step:,}" for step in steps]
        figure.frames = [
            go.Frame(name=name, data=[feature(at, number) for number in features])
            for at, name in enumerate(names)
        ]
        figure.update_layout(controls(names, duration=_PLAY_MS))
    return figure


def shares(
    sparsities: Floats,
    references: Mapping[str, Floats],
    seeds: Floats,
    name: str,
    *,
    height: int,
) -> go.Figure:
    """Draw the share of the loss at each sparsity. seeds: (seeds, S); name: of their mean.

    references: label -> (S,), what they are compared with.
    """
    columns = {"sparsity": [whole_percent(float(one)) for one in sparsities], **references}
    grey = [{"colour": COLOURS["floor"], "dash": dash} for dash in ("dot", "solid")]
    figure = chart(
        SHARES.table(columns),
        x="sparsity",
        y=[*references],
        looks=grey,
        marked=0,
        height=height,
    )
    if len(seeds):
        columns |= {"value": seeds.mean(0), "low": seeds.min(0), "high": seeds.max(0)}
        look = {"name": name, "colour": BLUE, "size": 9}
        found = chart(
            SHARES.table(columns),
            "points",
            x="sparsity",
            y="value",
            ends=("low", "high"),
            looks=[look],
        )
        figure.add_traces(found.data)
    return figure


ROLE_COLOURS: Mapping[str, str] = {
    "aligned": GREEN,
    "previous": BLUE,
    "induction": VERMILION,
    "first": PURPLE,
    "bos": PURPLE,
    "cls": PURPLE,
    "self": ORANGE,
    "repeated": OCHRE,
    "next": SKY,
    "above": SKY,
    "below": SKY,
    "near": SKY,
    "punctuation": OCHRE,
    "sink": PURPLE,
    "padding": VERMILION,
}
"""Each role's; what is no role is grey. Roles of one colour also have their words in the row."""
_NAMED = 0.2  # of the width: shorter segments have no words in them


def timeline(table: pd.DataFrame, names: Sequence[str], words: Mapping[str, str]) -> go.Figure:
    """Draw the roles of all heads. names: of the rows; words: of the roles, translated.

    Snapshots are equally wide: the first are close together in steps, since most happens there.
    """
    used = [role for role in WORDS if (table["role"] == role).any()]
    number = {role: n for n, role in enumerate(used)}
    roles = [rows["role"].tolist() for rows in heads(table)]
    labels = [[escape(words.get(one, one)) for one in rows["label"]] for rows in heads(table)]
    steps = [f"{step:,}" for step in table["step"].unique()]
    shown = sorted(
        {round(at) for at in np.linspace(0, len(steps) - 1, min(len(steps), 7)).tolist()}
    )
    figure = cells(
        [[number[role] for role in row] for row in roles],
        bands_of([_colour(role) for role in used]),
        (-0.5, len(used) - 0.5),
        says=[
            [
                Sentence(
                    "{name}<br>{step}<br>{role}",
                    {"name": name, "step": N_("step {step}", step=step), "role": label},
                )
                for step, label in zip(steps, row, strict=True)
            ]
            for name, row in zip(names, labels, strict=True)
        ],
        trace={"xgap": 0, "ygap": 3},
        height=_AROUND + _ROW * len(names),
        top=30,
        x={
            "title": N_("step"),
            "tickvals": shown,
            "ticktext": [steps[n] for n in shown],
            "range": [-0.5, len(steps) - 0.5],
        },
        y={"names": names},
    )
    for role in used:
        _add_legend(figure, words[WORDS[role]], _colour(role))
    _name_segments(figure, roles, words)
    return figure


def _colour(role: str) -> str:
    if role in NONE:
        return GREY if role == SPREAD else pale(GREY)
    return ROLE_COLOURS[role]


def _name_segments(
    figure: go.Figure, roles: Sequence[Sequence[str]], words: Mapping[str, str]
) -> None:
    """Write the role into each segment that is wide enough."""
    for row, of_head in enumerate(roles):
        at = 0
        for role, group in groupby(of_head):
            length = len(list(group))
            if role not in NONE and length >= _NAMED * len(of_head):
                figure.add_annotation(
                    x=at + (length - 1) / 2,
                    y=row,
                    text=words[WORDS[role]],
                    showarrow=False,
                    font={"size": 11, "color": "#ffffff"},
                )
            at += length
