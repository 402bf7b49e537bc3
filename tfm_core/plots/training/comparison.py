"""Runs side by side, raw and smoothed, and ways of training side by side: time and memory.

What was measured is always in sight, thin and pale, below its running mean. All panels share one
x axis, so that zooming one zooms all and the pointer reads all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.plots.chart import LOOKS, MAX_MARKED, Look, chart
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.plots.training.curves import smooth, thin
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Sentence

if TYPE_CHECKING:
    import pandas as pd

MAX_POINTS, MIN_POINTS, ALL_POINTS = 400, 60, 12_000
MAX_HOVERED = 12
"""Lines that the pointer reads all at once; of more it reads the nearest."""
_REACH = 100  # pixels: validations stand far apart
MAX_NAMED = 8
"""Lines that a legend names; of more the table does."""


def slots(ids: Iterable[str], kept: Mapping[str, int]) -> dict[str, int]:
    """Return a place for each run: the one it had, else the first that is free.

    So a run keeps its look while others come and go.
    """
    wanted = list(dict.fromkeys(ids))
    places = {run: kept[run] for run in wanted if run in kept}
    occupied = set(places.values())
    free = (number for number in range(len(wanted) + len(occupied)) if number not in occupied)
    for run in wanted:
        if run not in places:
            places[run] = next(free)
    return {run: places[run] for run in wanted}


@dataclass(frozen=True, slots=True, eq=False)
class RunLine:
    """A curve: values (n,) at x (n,), ascending. slot: the place of its look in ``LOOKS``."""

    name: str
    slot: int
    x: Floats
    y: Floats
    low: Floats | None = None  # of a mean of several runs: the ends of their spread
    high: Floats | None = None
    is_faint: bool = False  # one of those that a mean sums up: behind it, without a name


@dataclass(frozen=True, slots=True, eq=False)
class CurvePanel:
    """One quantity. is_noisy: it is smoothed, above what was measured. is_share: shown as %."""

    title: str
    lines: Sequence[RunLine]
    is_share: bool = False
    is_noisy: bool = False


def most_points(panels: Sequence[CurvePanel], window: int) -> int:
    """Return how many points of a line are drawn at most: the more lines, the fewer each."""
    n_lines = sum(
        (line.low is None) * (2 if panel.is_noisy and window > 1 else 1)
        for panel in panels
        for line in panel.lines
    )
    return max(MIN_POINTS, min(MAX_POINTS, ALL_POINTS // max(1, n_lines)))


def comparison(
    panels: Sequence[CurvePanel],
    x_title: str,
    *,
    window: int = 1,
    is_log_x: bool = False,
    is_log_y: bool = False,
    height: int = 460,
) -> go.Figure:
    """Draw panels one below the other, on one x axis.

    window: how many points the thick line averages, looking back only. is_log_y: of all panels
    but those of shares.
    """
    max_points = most_points(panels, window)
    n_named = max(
        (sum(not line_of_panel.is_faint for line_of_panel in panel.lines) for panel in panels),
        default=0,
    )
    has_means = any(line.low is not None for panel in panels for line in panel.lines)
    scale = {True: {"type": "log"}, False: {"rangemode": "tozero"}}
    columns = Columns()
    series: list[tuple[str, str, RunLine]] = []
    # series are drawn in the order of their looks: what was measured, means, lines with a name
    looks: tuple[dict[str, Look], ...] = ({}, {}, {})
    for number, panel in enumerate(panels):
        name = str(number)
        form = Column(panel.title, ".4~g", scale[is_log_y])
        columns[name] = share(panel.title) if panel.is_share else form
        for key, colour, line in _measured(panel, window, is_many=n_named > MAX_NAMED):
            looks[0][key] = {**_RAW, "colour": colour, "legendgroup": str(line.slot)}
            series.append((name, key, line))
        for line in panel.lines:
            if line.is_faint:
                continue
            is_mean = line.low is not None
            is_plain = is_mean or panel.is_noisy  # without marks
            key = f"{'mean' if is_mean else 'smooth' if is_plain else 'line'} {line.slot}"
            looks[1 if is_mean else 2][key] = {
                **LOOKS[line.slot % len(LOOKS)],
                "name": escape(line.name, quote=False),
                "width": 3 if is_mean else 2.2,
                "size": 6,
                "legendgroup": key if is_mean else str(line.slot),
            } | ({"mode": "lines"} if is_plain else {})
            if panel.is_noisy and not is_mean:
                line = replace(line, y=smooth(line.y, window))
            series.append((name, key, line))
    parts: dict[tuple[str, str], list[npt.NDArray[np.float32]]] = {}
    for *place, line in series:
        before = parts.setdefault((place[0], place[1]), [])
        before += [_GAP] * bool(before) + [_kept(line, max_points, is_log_x=is_log_x)]
    values = [np.concatenate(each, axis=1) for each in parts.values()]
    sizes = [each.shape[1] for each in values]
    table = {
        "panel": np.repeat([panel for panel, _line in parts], sizes),
        "line": np.repeat([line for _panel, line in parts], sizes),
        **dict(
            zip(("x", "y", "low", "high"), np.concatenate([_GAP[:, :0], *values], 1), strict=True)
        ),
    }
    is_read_at_once = n_named <= MAX_HOVERED
    is_drawn_fast = not is_read_at_once and not has_means  # see pages/components/live_figure
    return chart(
        columns.table(table),
        "bands",
        x="x",
        y="y",
        colour="line",
        facet="panel",
        looks={**looks[0], **looks[1], **looks[2]},
        ends=("low", "high"),
        marked=MAX_MARKED if is_read_at_once else 0,
        across={
            "title": Sentence("{title} (log)", {"title": x_title}) if is_log_x else x_title,
            **scale[is_log_x],
            "hoverformat": ",.4~g",
            "separatethousands": True,
            "showspikes": is_read_at_once,
            "spikemode": "across",
            "spikesnap": "cursor",
        },
        height=height,
        top=8,
        hovermode="x unified" if is_read_at_once else "closest",
        showlegend=n_named <= MAX_NAMED,
        layout={
            "hoversubplots": "axis" if is_read_at_once else "single",
            "hoverdistance": _REACH,
            "legend": {"font": {"size": 12}},
            "meta": {"manyLines": True} if is_drawn_fast else None,
        },
    )


_GAP = np.full((4, 1), np.nan, np.float32)  # between lines of one trace
_RAW: Look = {"mode": "lines", "width": 1, "opacity": 0.4, "hoverinfo": "skip", "showlegend": False}


def _measured(
    panel: CurvePanel, window: int, *, is_many: bool
) -> Iterator[tuple[str, str, RunLine]]:
    """Yield what was measured with a key and a colour; of many lines, a colour shares a key.

    The members of a mean are smoothed as it is, which would else lag behind all of them.
    """
    is_smoothed = panel.is_noisy and window > 1
    for line in panel.lines:
        is_drawn = line.is_faint or (is_smoothed and line.low is None)
        if not is_drawn:
            continue
        colour = LOOKS[line.slot % len(LOOKS)]["colour"]
        if is_smoothed and line.is_faint:
            line = replace(line, y=smooth(line.y, window))
        yield f"raw {colour if is_many else line.slot}", colour, line


def _kept(line: RunLine, max_points: int, *, is_log_x: bool) -> npt.NDArray[np.float32]:
    """Return (4, n): x, y, low and high of the points to draw; on a logarithmic axis, behind 0."""
    gaps = np.full(len(line.x), np.nan)
    ends = (gaps if end is None else end for end in (line.low, line.high))
    values = np.array([line.x, line.y, *ends], np.float32)
    if is_log_x:
        values = values[:, values[0] > 0]
    x, y = values[:2]
    if line.low is None and len(x):
        values = values[
            :, thin(x / x[0] if is_log_x else x, y, max_points=max_points, is_log=is_log_x)
        ]
    return values


SIDE_COLOURS = (
    GREY,
    BLUE,
    VERMILION,
    GREEN,
    PURPLE,
)  # by the order of the sides, the plain way first


def times(table: pd.DataFrame, clock: str, numbers: Sequence[int]) -> go.Figure:
    """Draw milliseconds a call as bars; whiskers reach over all rounds.

    table: side, its label; median, low, high; gain, how many times as fast as the first side.
    numbers: the places of the sides among all of their comparison, which decide their colours.
    """
    axis = {"range": [0, 1.75 * table["high"].max()], "nticks": 5}
    figure = chart(
        table.assign(side=table["side"].map(_broken)),
        "bars",
        x="median",
        ends=("low", "high"),
        hover=("low", "high"),
        labels={"median": N_("milliseconds per call ({clock})", clock=clock)},
        across=axis,
        **_look(numbers),
    )
    for number, row in enumerate(table.itertuples()):
        gain = f" · <b>{row.gain:.2f}x</b>" if number else ""
        place = {"x": row.high, "y": _broken(row.side), "xanchor": "left", "xshift": 8}
        figure.add_annotation(text=f"{row.median:.3g} ms{gain}", showarrow=False, **place)
    return figure


def kept_bytes(table: pd.DataFrame, numbers: Sequence[int]) -> go.Figure:
    """Draw what the forward pass keeps for the backward pass. table: side, size (MiB), bytes."""
    words = [f"{size:.3g} MiB" for size in table["size"]]
    return chart(
        table.assign(side=table["side"].map(_broken), words=words),
        "bars",
        x="size",
        text="words",
        hover=["bytes"],
        across={"nticks": 5},
        **_look(numbers),
    )


def curve(
    table: pd.DataFrame,
    x_title: str,
    y_title: str,
    columns: tuple[str, str, str] = ("median", "low", "high"),
) -> go.Figure:
    """Draw spreads over x, both axes logarithmic; columns: the middle, and what whiskers reach."""
    middle, low, high = columns
    x = table["x"].to_list()
    texts = [f"{value:,.0f}" for value in x]
    return chart(
        table,
        x="x",
        y=middle,
        ends=(low, high),
        looks=[{"colour": BLUE, "size": 8}],
        across={"title": x_title, "type": "log", "tickvals": x, "ticktext": texts},
        up={"title": y_title, "type": "log", "tickformat": "~g", "dtick": 1},
    )


def _look(numbers: Sequence[int]) -> dict[str, Any]:
    colours = [SIDE_COLOURS[i] for i in numbers]
    return {"y": "side", "orientation": "h", "looks": [{"colour": colours}]}


def _broken(label: str) -> str:
    """Break a label in two lines, so that it leaves room for the bars on a narrow screen."""
    words, lines = label.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 16 and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(escape(line, quote=False) for line in lines)
