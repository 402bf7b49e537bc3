"""A batch of sentences as two pictures of one shape (B, T): its numbers and its padding mask."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.text.padding import Batch
from tfm_core.plots.attention import SCALES, Theme
from tfm_core.plots.kinds import lay_out
from tfm_core.plots.palette import CARDS, INKS
from tfm_core.sentences import N_

_MAX_WORD = 7
_SPECIAL: dict[Theme, str] = {"light": "#f3dfb8", "dark": "#4a3d22"}


def ids(batch: Batch, theme: Theme = "light") -> go.Figure:
    """Draw the numbers of a batch, with their words where there is room."""
    is_special = (batch.ids < len(SPECIALS)) & batch.mask
    kinds = batch.mask.astype(np.int64) * 2 - is_special
    shades = (CARDS[theme], _SPECIAL[theme], SCALES[theme][1])
    scale = [[edge / len(shades), shade] for i, shade in enumerate(shades) for edge in (i, i + 1)]
    return _cells(batch, kinds, scale, _labels(batch), theme, top=len(shades) - 1)


def mask(batch: Batch, theme: Theme = "light") -> go.Figure:
    """Draw the padding mask: 1 where there is a token, 0 where there is padding."""
    colour = SCALES[theme][1]
    return _cells(
        batch,
        batch.mask.astype(np.int64),
        [[0, CARDS[theme]], [0.5, CARDS[theme]], [0.5, colour], [1, colour]],
        [[str(int(cell)) for cell in row] for row in batch.mask],
        theme,
        top=1,
    )


def _labels(batch: Batch) -> list[list[str]]:
    wide = batch.ids.shape[1] <= 12
    return [
        [
            f"{id}<br>{_cut(token)}" if wide else str(id)
            for id, token in zip(row, words, strict=True)
        ]
        for row, words in zip(batch.ids.tolist(), batch.tokens, strict=True)
    ]


def _cut(token: str) -> str:
    return escape(token if len(token) <= _MAX_WORD else f"{token[: _MAX_WORD - 1]}…", quote=False)


def _cells(
    batch: Batch,
    values: npt.NDArray[np.int64],
    scale: list[list[Any]],
    labels: list[list[str]],
    theme: Theme,
    *,
    top: int,
) -> go.Figure:
    n, length = batch.ids.shape
    texts = [
        [
            f"sentence {b + 1}, place {t + 1}<br>{escape(word, quote=False)} = {batch.ids[b, t]}"
            f"<br>{'token' if batch.mask[b, t] else 'padding: masked'}"
            for t, word in enumerate(words)
        ]
        for b, words in enumerate(batch.tokens)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=top,
            colorscale=scale,
            showscale=False,
            xgap=2,
            ygap=2,
            text=labels,
            texttemplate="%{text}",
            textfont={"size": 11 if length <= 16 else 9, "color": INKS[theme]},
            hovertext=texts,
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    every = -(-length // 16)
    bare: dict[str, Any] = {"tickmode": "array", "showgrid": False, "zeroline": False}
    return lay_out(
        figure,
        height=90 + 44 * n,
        x={
            "title": N_("place T = {length}", length=length),
            "tickvals": list(range(0, length, every)),
            "ticktext": [str(i + 1) for i in range(0, length, every)],
            **bare,
        },
        y={
            "title": N_("sentence B = {n}", n=n),
            "tickvals": list(range(n)),
            "ticktext": [str(i + 1) for i in range(n)],
            "autorange": "reversed",
            **bare,
        },
    )
