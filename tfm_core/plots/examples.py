"""Figures of examples: pictures, custom data sets, what a model gets right and wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.errors import N_BINS
from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import Details, Look, cells, chart
from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.kinds import frame
from tfm_core.plots.palette import CARDS, COLOURS, GREY, INKS
from tfm_core.plots.png import picture_url
from tfm_core.plots.writing import marked
from tfm_core.sentences import N_

if TYPE_CHECKING:
    import pandas as pd

_ERRORS: dict[Theme, tuple[str, str]] = {
    "light": ("#fbe3d0", "#d55e00"),
    "dark": ("#4a2a12", "#e8762a"),
}
_MAX_LETTERS = 14


def confusion(
    counts: npt.NDArray[np.int64],
    names: Sequence[str],
    theme: Theme = "light",
    *,
    wrong: npt.NDArray[np.int64] | None = None,
    top: int | None = None,
    chosen: tuple[int, int] | None = None,
    height: int = 400,
) -> go.Figure:
    """Draw the true class down and the predicted class across; only errors have colour.

    counts: (classes, classes). wrong: how many of them are errors, where those on the diagonal may
    be, too: a class that groups several has no colour there, and its hover text says how many
    are wrong. top: the count that has the strongest colour; None for the largest. chosen: row and
    column of the cell that is framed.
    """
    off_diagonal = counts * (1 - np.eye(len(counts), dtype=np.int64))
    errors = np.where(off_diagonal > 0, off_diagonal if wrong is None else wrong, 0).astype(
        np.float32
    )
    errors[errors == 0] = np.nan
    wrong = off_diagonal if wrong is None else wrong
    pale, strong = _ERRORS[theme]
    classes = [_short(name) for name in names]
    figure = cells(
        errors,
        [[0, pale], [1, strong]],
        (0, max(3.0, float(wrong.max(initial=0) if top is None else top))),
        says=[
            [_hover(a, b, n, bad) for b, n, bad in zip(names, row, bads, strict=True)]
            for a, row, bads in zip(names, counts.tolist(), wrong.tolist(), strict=True)
        ],
        texts=[[str(n) if n else "" for n in row] for row in counts.tolist()],
        trace={"textfont": {"color": INKS[theme]}},
        height=height,
        x={"title": N_("predicted"), "names": classes},
        y={"title": N_("true"), "names": classes},
        plot_bgcolor=CARDS[theme],
    )
    if chosen is not None:
        row, column = chosen
        ends = (column - 0.5, row - 0.5, column + 0.5, row + 0.5)
        figure.add_shape(frame(*ends, colour=INKS[theme], width=3))
    return figure


def _hover(truth: str, predicted: str, n: int, n_wrong: int) -> str:
    names = {"truth": escape(marked(truth)), "said": escape(marked(predicted))}
    if truth == predicted and n_wrong:
        return N_(
            "true {truth}, predicted {said}: {n:,} ({bad:,} wrong)", **names, n=n, bad=n_wrong
        )
    return N_("true {truth}, predicted {said}: {n:,}", **names, n=n)


def _short(name: str) -> str:
    shown = marked(name)
    return escape(shown if len(shown) <= _MAX_LETTERS else f"{shown[: _MAX_LETTERS - 1]}…")


_POINT: Look = {"colour": COLOURS["validation"], "size": 9}


def by_group(
    table: pd.DataFrame,
    title: str,
    of: str = "accuracy",
    look: Look = _POINT,
    **details: Unpack[Details],
) -> go.Figure:
    """Draw ``accuracy`` or ``loss`` with 95% intervals. title: what the groups are."""
    details |= {"ends": ("low", "high"), "hover": ("n_right", "n", "low", "high")}
    if of == "loss":
        details |= {"ends": ("loss_low", "loss_high"), "hover": ("n", "accuracy")}
    names = {"title": title, "type": "category", "dtick": 1}
    is_flat = details.setdefault("orientation", "h") == "h"
    details |= {"up": names} if is_flat else {"across": names}
    x, y = (of, "label") if is_flat else ("label", of)
    return chart(table, "points", x=x, y=y, looks=[look], **details)


def reliability(bins: pd.DataFrame, n_bins: int = N_BINS) -> go.Figure:
    """Draw the share right over the confidence, bin by bin, with counts and 95% intervals.

    The diagonal is a model whose confidence can be taken at its word. n_bins: with empty ones.
    """
    look = {
        "colour": COLOURS["validation"],
        "opacity": 0.75,
        "width": 0.92 / n_bins,
        "texttemplate": "%{text:,}",
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "constraintext": "none",
        "showlegend": False,
    }
    figure = chart(
        bins,
        "bars",
        x="middle",
        y="accuracy",
        ends=("low", "high"),
        text="n",
        hover=("confidence", "n_right", "n", "low", "high"),
        looks=[look],
        across={"title": N_("confidence"), "range": [0, 1], "tickformat": ".0%"},
        up={"range": [0, 1.02]},
        height=350,
        top=36,
    )
    return figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": GREY, "dash": "dash", "width": 2},
        name=N_("perfectly calibrated"),
        hoverinfo="skip",
    )


PARTS = ("train", "validation", "test")
_NAMES = {"train": N_("training"), "validation": N_("validation"), "test": N_("test")}
_PATTERNS = {"train": "", "validation": "/", "test": "x"}
COUNTS = Columns(
    {
        "class": Column(N_("class"), axis={"type": "category"}),
        "tokens": Column(N_("tokens")),
        "value": Column(form=","),
    }
)
_MAX_BARS, _MAX_NAME = 60, 30
MAX_STRIPS, _IN_STRIP, _GAP = 8, 12, 2


def strips(pictures: Mapping[str, Sequence[npt.NDArray[np.uint8]]]) -> str:
    """Return HTML: for each of the first classes a strip of its first pictures, and its name.

    pictures: by class, uint8 (C, height, width).
    """
    figures = []
    for name, members in list(pictures.items())[:MAX_STRIPS]:
        caption = f"{escape(name)} · {len(members):,}"
        url = picture_url(_strip(np.stack(members[:_IN_STRIP])))
        figures.append(
            f'<figure><img alt="{escape(name)}" src="{url}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return f'{_STYLE}<div class="tfm-strips">{"".join(figures)}</div>'


def _strip(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return some pictures side by side, uint8 (C, height, width)."""
    n, channels, height, width = images.shape
    strip = np.full((channels, height, max(1, n * (width + _GAP) - _GAP)), 127, np.uint8)
    for at, image in enumerate(images):
        left = at * (width + _GAP)
        strip[:, :, left : left + width] = image
    return strip


def balance(table: Mapping[str, Sequence[int]], *, height: int = 240) -> go.Figure:
    """Draw the examples of each class in each split, one bar on the other.

    Of very many classes the largest are drawn; the axis says how many are not.
    """
    largest = sorted(table, key=lambda name: -sum(table[name]))[:_MAX_BARS]
    names = [name for name in table if name in largest]
    counts = np.array([table[name] for name in names])
    title, more = N_("class"), len(table) - len(names)
    if more > 0:
        title = N_("class ({n} more not shown)", n=more)
    splits = {
        part: N_("{part}: {n:,}", part=_NAMES[part], n=sum(numbers))
        for part, numbers in zip(PARTS, zip(*table.values(), strict=True), strict=True)
        if any(numbers)
    }
    columns = {part: counts[:, PARTS.index(part)] for part in splits}
    return chart(
        COUNTS.table({"class": [escape(name[:_MAX_NAME]) for name in names], **columns}),
        "bars",
        x="class",
        y=splits,
        looks=[{"colour": COLOURS[part], "pattern": _PATTERNS[part]} for part in splits] or [{}],
        labels={"class": title, "value": N_("examples")},
        height=height,
        barmode="stack",
    )


def lengths(sizes: Mapping[str, Sequence[int]]) -> go.Figure:
    """Draw how many texts of each column have each length, in tokens."""
    import pandas as pd  # Home needs pictures from here, and no tables

    parts = []
    for name, values in list(sizes.items())[:2]:
        counts = np.bincount(values)
        rows = {"tokens": range(len(counts)), "value": counts, "column": escape(name)}
        parts.append(pd.DataFrame(rows))
    return chart(
        COUNTS.table(pd.concat(parts)),
        "bars",
        x="tokens",
        y="value",
        colour="column",
        labels={"value": N_("texts")},
        height=220,
        showlegend=True,
    )


_STYLE = """<style>
.tfm-strips { display: grid; gap: 0.5rem 1.25rem; font-size: 0.875rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22.5rem), 1fr)); }
.tfm-strips figure { margin: 0; }
.tfm-strips img { height: 2rem; max-width: 100%; object-fit: cover; object-position: left;
  image-rendering: pixelated; display: block; border-radius: 0.25rem; }
</style>"""
