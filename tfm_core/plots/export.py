"""Figures and numbers to take away: a page that works offline, and tables as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, cast

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.attention import Theme
from tfm_core.plots.palette import BACKGROUNDS, INKS
from tfm_core.plots.template import FONT, template


def page(*figures: go.Figure, title: str, words: str = "", theme: Theme = "light") -> bytes:
    """Return a self-contained HTML page of figures: interactive, and it needs no network.

    plotly.js is inside, about 4.5 MB. title and words are plain text; words say what to look for.
    """
    drawn = "".join(_drawn(one, theme, number) for number, one in enumerate(figures))
    style = (
        f"body{{margin:1.5rem;background:{BACKGROUNDS[theme]};color:{INKS[theme]};"
        f"font-family:{FONT}}}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"<h1>{escape(title)}</h1>{drawn}<p>{escape(words)}</p></body></html>"
    ).encode()


def _drawn(figure: go.Figure, theme: Theme, number: int) -> str:
    shown = go.Figure(figure).update_layout(
        template=template(theme),
        paper_bgcolor=BACKGROUNDS[theme],
    )
    drawn: str = shown.to_html(
        full_html=False,
        include_plotlyjs=number == 0,
        div_id=f"figure-{number}",  # the same figures make the same page
        config={"displaylogo": False, "responsive": True},
    )
    return drawn


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
