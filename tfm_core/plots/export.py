"""Figures and numbers to download: an offline page, maps as SVG, tables as CSV."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.attention.maps import MapView
from tfm_core.plots.heads.attention import Theme, top_of
from tfm_core.plots.kinds import FONT, template
from tfm_core.plots.palette import BACKGROUNDS, INKS, MASKED, SCALES
from tfm_core.plots.png import png_url
from tfm_core.plots.sheet import colours_at
from tfm_core.plots.writing import marked
from tfm_core.sentences import N_, Say, translated


def page(
    figure: go.Figure,
    *,
    title: str,
    words: str,
    theme: Theme = "light",
    language: str = "en",
    say: Say = str,
) -> bytes:
    """Return a self-contained HTML page of a figure: interactive, and it needs no network.

    plotly.js is inside, about 4.5 MB. title and words are plain text; words say what to look for.
    say: translates what the figure writes into the language.
    """
    shown = go.Figure(translated(figure.to_dict(), say)).update_layout(
        template=template(theme), paper_bgcolor=BACKGROUNDS[theme]
    )
    chart = shown.to_html(
        full_html=False,
        div_id="figure",  # the same figure makes the same page
        config={"displaylogo": False, "responsive": True},
    )
    style = (
        f"body{{margin:1.5rem;background:{BACKGROUNDS[theme]};color:{INKS[theme]};"
        f"font-family:{FONT}}}"
    )
    return (
        f'<!doctype html><html lang="{escape(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"<h1>{escape(title)}</h1>{chart}<p>{escape(words)}</p></body></html>"
    ).encode()


def map_table(view: MapView, written: Sequence[str | None] = ()) -> pd.DataFrame:
    """Return one row a cell: query and key by number (from 1) and token, weight, may_attend.

    view: of weights (Q, K). written: the token that each query writes, a column where any does.
    """
    queries, keys = (axis.ravel() for axis in np.indices(view.weights.shape))
    writes = {"writes": [written[index] for index in queries.tolist()]} if any(written) else {}
    return pd.DataFrame(
        {
            "query": queries + 1,
            "query_token": [view.query[index] for index in queries.tolist()],
            **writes,
            "key": keys + 1,
            "key_token": [view.key[index] for index in keys.tolist()],
            "weight": np.asarray(view.weights, np.float32).ravel(),
            "may_attend": view.allowed.ravel(),
        }
    )


def csv(table: pd.DataFrame) -> bytes:
    """Return a table as CSV in UTF-8, marked so that spreadsheets read Hangul rightly.

    A token that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    safe = table.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = safe[name].map(_no_formula)
    return cast("str", safe.to_csv(index=False)).encode("utf-8-sig")


def _no_formula(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


_CELL = 24  # pixels to a side of a cell with room enough
_LARGEST = 1600  # pixels to a side of a map; cells become smaller beyond
_MAX_LABELS = 100
_MAX_SQUARES = 10_000  # cells with a square and a tooltip of their own; more become one picture


def map_svg(
    view: MapView,
    *,
    title: str = "",
    theme: Theme = "light",
    top: float | None = 1.0,
    say: Say = str,
) -> bytes:
    """Return a map as SVG: every cell a square with its value as a tooltip, tokens on both axes.

    view: of weights (Q, K). top: the weight with the most ink, None the largest. say: translates.
    """
    query_tokens, key_tokens, shape = view.query, view.key, view.weights.shape
    end = top_of(view.seen()) if top is None else top
    colours = cell_colours(view, SCALES[theme], 0.0, end, theme)
    size = min(_CELL, _LARGEST / max(1, *shape))
    left, head = _room(query_tokens), _room(key_tokens) + (26 if title else 0)
    words = say(
        N_(
            "{rows} down, {columns} across; colours from {low:.3g} to {high:.3g}",
            rows=view.query_title,
            columns=view.key_title,
            low=0.0,
            high=end,
        )
    )
    width = max(left + size * shape[1] + 24, 7 * max(len(words), len(title)) + 16)
    height = head + size * shape[0] + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="{escape(FONT)}" font-size="12" '
        f'fill="{INKS[theme]}" '
        f'role="img"><title>{_plain(title or say(N_("Attention map")))}</title>',
        f'<rect width="{width:g}" height="{height:g}" fill="{BACKGROUNDS[theme]}"/>',
        f'<text x="8" y="20" font-size="15">{_plain(title)}</text>',
        *_cells(view, colours, (left, head, size)),
        *_labels(query_tokens, key_tokens, (left, head, size)),
        f'<text x="8" y="{height - 10:g}">{_plain(words)}</text>',
        "</svg>",
    ]
    return "\n".join(parts).encode()


def cell_colours(
    view: MapView, scale: Sequence[str], lowest: float, highest: float, theme: Theme
) -> npt.NDArray[np.uint8]:
    """Return (Q, K, 3): the colour of every cell; what the mask forbids is grey."""
    shares = np.clip((np.asarray(view.weights, np.float64) - lowest) / (highest - lowest), 0, 1)
    colours = colours_at(scale, np.nan_to_num(shares))
    colours[~view.allowed] = list(bytes.fromhex(MASKED[theme][1:]))
    return colours


Frame = tuple[float, float, float]  # left and upper edge of the cells, size of one, in pixels


def _cells(view: MapView, colours: npt.NDArray[np.uint8], frame: Frame) -> list[str]:
    left, upper, size = frame
    weights, allowed = view.weights, view.allowed
    if weights.size > _MAX_SQUARES:
        rows, columns = weights.shape
        return [
            f'<image x="{left}" y="{upper}" width="{columns * size}" height="{rows * size}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" '
            f'href="{png_url(colours)}"/>'
        ]
    squares = []
    for q, row in enumerate(np.asarray(weights, np.float32).tolist()):
        for k, weight in enumerate(row):
            words = f"{view.query[q]} → {view.key[k]}: {weight:.4f}"
            words += "" if allowed[q, k] else " (masked)"
            colour = "#{:02x}{:02x}{:02x}".format(*colours[q, k].tolist())
            squares.append(
                f'<rect x="{left + k * size:g}" y="{upper + q * size:g}" width="{size:g}" '
                f'height="{size:g}" fill="{colour}"><title>{_plain(words)}</title></rect>'
            )
    return squares


def _labels(query: Sequence[str], key: Sequence[str], frame: Frame) -> list[str]:
    left, upper, size = frame
    down, across = (-(-len(tokens) // _MAX_LABELS) for tokens in (query, key))
    font = min(12.0, max(5.0, size * max(down, across) * 0.8))
    words = [
        f'<text x="{left - 6}" y="{upper + (q + 0.5) * size:g}" text-anchor="end" '
        f'dominant-baseline="central" font-size="{font:g}">{_plain(_short(query[q]))}</text>'
        for q in range(0, len(query), down)
    ]
    for k in range(0, len(key), across):
        x, y = left + (k + 0.5) * size, upper - 6
        words.append(
            f'<text x="{x:g}" y="{y:g}" transform="rotate(-90 {x:g} {y:g})" '
            f'dominant-baseline="central" font-size="{font:g}">{_plain(_short(key[k]))}</text>'
        )
    return words


def _room(tokens: Sequence[str]) -> int:
    """Return the pixels that the longest token takes; Hangul and the like are twice as wide."""
    widths = [
        sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in _short(token))
        for token in tokens
    ]
    return 18 + 7 * max(widths, default=1)


def _short(token: str) -> str:
    cut = token if len(token) <= 16 else f"{token[:15]}…"
    return marked(cut) if cut.strip(" ") else "␣"


def _plain(text: str) -> str:
    """Return text as XML can carry it: escaped, without the signs that XML forbids."""
    legal = "".join(sign if sign >= " " else "�" for sign in text)
    return escape(legal)
