"""Custom sets as figures: examples per class, and lengths of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.chart import chart, wide
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.palette import BLUE, COLOURS, VERMILION
from tfm_core.sentences import N_

PARTS = ("train", "validation", "test")
_NAMES = {"train": N_("training"), "validation": N_("validation"), "test": N_("test")}
_PATTERNS = {"train": "", "validation": "/", "test": "x"}
_MAX_BARS, _MAX_LETTERS = 60, 30
MAX_STRIPS, _IN_STRIP, _GAP = 8, 12, 2


def strips(
    images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], names: Sequence[str]
) -> str:
    """Return HTML: for each of the first classes a strip of its first pictures, and its name.

    images: (N, C, height, width) uint8. labels: (N,) numbers of classes.
    """
    figures = []
    for label, name in list(enumerate(names))[:MAX_STRIPS]:
        members = np.flatnonzero(labels == label)
        caption = f"{escape(name)} · {len(members):,}"
        figures.append(
            f'<figure><img alt="{escape(name)}" src="{picture_url(_strip(images[members]))}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return f'{_STYLE}<div class="tfm-strips">{"".join(figures)}</div>'


def _strip(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the first of some pictures side by side, uint8 (C, height, width)."""
    n, channels, height, width = images[:_IN_STRIP].shape
    strip = np.full((channels, height, max(1, n * (width + _GAP) - _GAP)), 127, np.uint8)
    for at, image in enumerate(images[:_IN_STRIP]):
        left = at * (width + _GAP)
        strip[:, :, left : left + width] = image
    return strip


def balance(names: Sequence[str], table: npt.NDArray[np.int64], *, height: int = 240) -> go.Figure:
    """Draw the examples of each class in each split, (classes, splits), one bar on the other.

    Of very many classes the largest are drawn.
    """
    order = np.arange(len(names))
    if len(names) > _MAX_BARS:
        order = np.sort(table.sum(1).argsort(kind="stable")[::-1][:_MAX_BARS])
    columns, looks = {}, []
    for at, part in enumerate(PARTS):
        if table[:, at].any():
            name = _NAMES[part]
            columns[N_("{part}: {n:,}", part=name, n=int(table[:, at].sum()))] = table[order, at]
            hover = N_("%{{x}}: %{{y:,}}<extra>{part}</extra>", part=name)
            marker = {"color": COLOURS[part], "pattern": {"shape": _PATTERNS[part]}}
            looks.append({"marker": marker, "hovertemplate": hover})
    return chart(
        wide([escape(names[at]) for at in order.tolist()], columns),
        "bars",
        looks=looks or [{}],
        height=height,
        top=36,
        x={"title": N_("class"), "type": "category"},
        y={"title": N_("examples")},
        barmode="stack",
    )


def labels(balance: Mapping[str, int]) -> go.Figure:
    """Draw the examples of each label, the most frequent first; of very many the first ones.

    The axis says how many labels are not drawn.
    """
    shown = dict(list(balance.items())[:_MAX_BARS])
    title, more = N_("label"), len(balance) - len(shown)
    if more > 0:
        title = N_("label ({n} more are not drawn)", n=more)
    return chart(
        {None: ([escape(name[:_MAX_LETTERS]) for name in shown], list(shown.values()))},
        "bars",
        looks=[{"marker": {"color": COLOURS["train"]}}],
        hover="%{x}: %{y:,}<extra></extra>",
        height=220,
        top=36,
        x={"title": title, "type": "category"},
        y={"title": N_("sentences")},
    )


def lengths(sizes: Mapping[str, Sequence[int]]) -> go.Figure:
    """Draw how many texts of each column have each length, in tokens."""
    counts = {escape(name): np.bincount(values) for name, values in sizes.items()}
    return chart(
        {name: (range(len(n)), n) for name, n in list(counts.items())[:2]},
        "bars",
        looks=[{"marker": {"color": BLUE}}, {"marker": {"color": VERMILION}}],
        hover=lambda name: N_("%{{x}} tokens: %{{y:,}}<extra>{name}</extra>", name=name),
        height=220,
        top=36,
        x={"title": N_("tokens")},
        y={"title": N_("texts")},
        barmode="group",
        showlegend=True,
    )


_STYLE = """<style>
.tfm-strips { display: grid; gap: 0.5rem 1.25rem; font-size: 0.875rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22.5rem), 1fr)); }
.tfm-strips figure { margin: 0; }
.tfm-strips img { height: 2rem; max-width: 100%; object-fit: cover; object-position: left;
  image-rendering: pixelated; display: block; border-radius: 0.25rem; }
</style>"""
