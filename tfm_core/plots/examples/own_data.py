"""Custom sets as figures: examples per class, and lengths of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import chart
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.palette import COLOURS
from tfm_core.sentences import N_

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
_MAX_BARS, _MAX_LETTERS = 60, 30
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
        COUNTS.table({"class": [escape(name[:_MAX_LETTERS]) for name in names], **columns}),
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
