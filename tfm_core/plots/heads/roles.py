"""The roles of heads over a training: one row a head, coloured by what it does at each snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.attention.head_statistics import SPREAD
from tfm_core.inspect.discover.roles import NONE, WORDS, heads
from tfm_core.plots.chart import add_legend, bands_of, cells
from tfm_core.plots.kinds import pale
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, PURPLE, SKY, VERMILION
from tfm_core.sentences import N_

COLOURS: Mapping[str, str] = {
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
_ROW, _AROUND = 26, 90  # pixels
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
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False}
    figure = cells(
        [[number[role] for role in row] for row in roles],
        bands_of([_colour(role) for role in used]),
        (-0.5, len(used) - 0.5),
        trace={
            "x": list(range(len(steps))),
            "y": list(range(len(names))),
            "xgap": 0,
            "ygap": 3,
            "customdata": [
                [[name, step, label] for step, label in zip(steps, row, strict=True)]
                for name, row in zip(names, labels, strict=True)
            ],
            "hovertemplate": "%{customdata[0]}<br>"
            + N_("step {step}", step="%{customdata[1]}")
            + "<br>%{customdata[2]}<extra></extra>",
        },
        height=_AROUND + _ROW * len(names),
        top=30,
        x={
            "title": N_("step"),
            "tickvals": shown,
            "ticktext": [steps[n] for n in shown],
            "range": [-0.5, len(steps) - 0.5],
            **axis,
        },
        y={
            "tickvals": list(range(len(names))),
            "ticktext": list(names),
            "autorange": "reversed",
            **axis,
        },
    )
    for role in used:
        add_legend(figure, words[WORDS[role]], _colour(role))
    _name_segments(figure, roles, words)
    return figure


def _colour(role: str) -> str:
    if role in NONE:
        return GREY if role == SPREAD else pale(GREY)
    return COLOURS[role]


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
