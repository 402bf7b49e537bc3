"""Curves of many runs in one figure: a colour and a line style for each, raw and smoothed.

What was measured is always in sight, thin and pale, below its running mean. All panels share one
x axis, so that zooming one zooms all and the pointer reads all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots import described
from tfm_core.plots.chart import DASHES, MAX_MARKED
from tfm_core.plots.kinds import COLORWAY, band
from tfm_core.plots.training.stage import smooth, thin
from tfm_core.probe.types import Floats
from tfm_core.sentences import Sentence

_DASHES = (*DASHES, "12px,3px,2px,3px")
_SVG_DASHES = ("", "7 4", "2 3", "7 3 2 3", "12 4", "12 3 2 3", "10 3 2 3")
N_LOOKS = len(COLORWAY) * len(_DASHES)
"""Looks that are all different; from here on they begin again."""
MAX_POINTS, MIN_POINTS, ALL_POINTS = 400, 60, 12_000
MAX_HOVERED = 12
"""Lines that the pointer reads all at once; of more it reads the nearest."""
_GAP = 0.07  # between panels, as a share of the figure
_REACH = 100  # pixels: validations stand far apart
MAX_NAMED = 8
"""Lines that a legend names; of more the table does."""


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How the line of a run is drawn, everywhere: its colour and its dashes."""

    colour: str
    dash: str
    svg_dash: str


def style_of(slot: int) -> LineStyle:
    """Return the look of a place, from 0: neighbours differ in colour and in line style."""
    row, column = divmod(slot % N_LOOKS, len(COLORWAY))
    style = (row + column) % len(_DASHES)
    return LineStyle(COLORWAY[column], _DASHES[style], _SVG_DASHES[style])


def slots(ids: Iterable[str], kept: Mapping[str, int]) -> dict[str, int]:
    """Return a place for each run: the one it had, else the first that is free.

    So a run keeps its look while others come and go.
    """
    wanted = list(dict.fromkeys(ids))
    found = {one: kept[one] for one in wanted if one in kept}
    occupied = set(found.values())
    free = (number for number in range(len(wanted) + len(occupied)) if number not in occupied)
    for one in wanted:
        if one not in found:
            found[one] = next(free)
    return {one: found[one] for one in wanted}


@dataclass(frozen=True, slots=True, eq=False)
class RunLine:
    """A curve: values (n,) at x (n,), ascending. slot: see ``style_of``."""

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
    most = most_points(panels, window)
    share = (1 - _GAP * (len(panels) - 1)) / max(1, len(panels))
    traces: list[dict[str, Any]] = []
    axes: dict[str, dict[str, Any]] = {}
    n_named, has_means = 0, False
    for number, panel in enumerate(panels):
        letter = f"y{number + 1}" if number else "y"
        named = sorted(
            (one for one in panel.lines if not one.is_faint), key=lambda one: one.low is None
        )
        n_named = max(n_named, len(named))
        has_means = has_means or any(one.low is not None for one in named)
        is_many = len(named) > MAX_NAMED
        is_marked = not panel.is_noisy and len(named) <= MAX_HOVERED
        drawn = list(_measured(panel, window, most, is_log_x, is_many))
        for line in named:
            drawn += _line(line, panel, window, most, is_log_x, is_marked)
            drawn[-1]["showlegend"] = not number
        traces += [{**trace, "xaxis": "x", "yaxis": letter} for trace in drawn]
        top = 1 - number * (share + _GAP)
        is_log = is_log_y and not panel.is_share
        axes[letter.replace("y", "yaxis")] = {
            "domain": [max(0.0, top - share), top],
            "anchor": "x",
            "title": {"text": panel.title},
            "type": "log" if is_log else "linear",
            "rangemode": "normal" if is_log else "tozero",
            **({"range": [0, 1.04], "tickformat": ".0%"} if panel.is_share else {}),
        }
    is_read_at_once = n_named <= MAX_HOVERED
    is_drawn_fast = not is_read_at_once and not has_means  # see pages/components/live_figure
    layout = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "hovermode": "x unified" if is_read_at_once else "closest",
        "hoversubplots": "axis" if is_read_at_once else "single",
        "hoverdistance": _REACH,
        "showlegend": n_named <= MAX_NAMED,
        "legend": {"font": {"size": 12}},
        "meta": {"manyLines": True} if is_drawn_fast else None,
        "xaxis": {
            "anchor": f"y{len(panels)}" if len(panels) > 1 else "y",
            "title": {
                "text": Sentence("{title} (log)", {"title": x_title}) if is_log_x else x_title
            },
            "type": "log" if is_log_x else "linear",
            "rangemode": "normal" if is_log_x else "tozero",
            "hoverformat": ",.4~g",
            "separatethousands": True,
            "showspikes": is_read_at_once,
            "spikemode": "across",
            "spikesnap": "cursor",
        },
    }
    return go.Figure(traces, {**layout, **axes})


def _line(
    line: RunLine, panel: CurvePanel, window: int, most: int, is_log_x: bool, is_marked: bool
) -> list[dict[str, Any]]:
    """Return the line of a run that has a name, or a mean with its spread below it."""
    style, below = style_of(line.slot), []
    group = {"legendgroup": str(line.slot)}
    if line.low is not None and line.high is not None:
        shown = line.x > 0 if is_log_x else slice(None)
        x, y, low, high = (
            np.asarray(one[shown], np.float32) for one in (line.x, line.y, line.low, line.high)
        )
        group = {"legendgroup": f"band {line.slot}"}
        below = band(x, low, high, style.colour, showlegend=False, **group)
    else:
        y = smooth(line.y, window) if panel.is_noisy else line.y
        x, y = _kept(line.x, y, most, is_log_x=is_log_x)
    has_marks = is_marked and not below and len(x) <= MAX_MARKED
    form = ".1%" if panel.is_share else ".4~g"
    trace = {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "lines+markers" if has_marks else "lines",
        "line": {"color": style.colour, "width": 3 if below else 2.2, "dash": style.dash},
        "marker": {"size": 6},
        "name": escape(line.name, quote=False),
        "hovertemplate": f"%{{y:{form}}} {escape(panel.title, quote=False)}",
        **group,
    }
    if len(x):
        trace["meta"] = described.line(line.name, x, y, is_share=panel.is_share)
    return [*below, trace]


def _measured(
    panel: CurvePanel, window: int, most: int, is_log_x: bool, is_many: bool
) -> Iterator[dict[str, Any]]:
    """Yield what was measured, thin and pale; of many lines, those of a colour are one trace.

    The members of a mean are smoothed as it is, which would else lag behind all of them.
    """
    is_smoothed = panel.is_noisy and window > 1
    lines = [line for line in panel.lines if line.is_faint]
    if is_smoothed:
        members = [replace(line, y=smooth(line.y, window)) for line in lines]
        lines = [one for one in panel.lines if not one.is_faint and one.low is None] + members
    together: dict[tuple[str, int], list[RunLine]] = {}
    for line in lines:
        colour = style_of(line.slot).colour
        together.setdefault((colour, 0 if is_many else line.slot), []).append(line)
    gap = np.array([np.nan], np.float32)
    for (colour, _slot), group in together.items():
        parts = [_kept(line.x, line.y, most, is_log_x=is_log_x) for line in group]
        x, y = (
            np.concatenate([each for part in parts for each in (part[of], gap)][:-1])
            for of in (0, 1)
        )
        yield {
            "type": "scatter",
            "x": x,
            "y": y,
            "mode": "lines",
            "opacity": 0.4,
            "hoverinfo": "skip",
            "line": {"color": colour, "width": 1},
            "showlegend": False,
            "legendgroup": str(group[-1].slot),
        }


def _kept(
    x: Floats, y: Floats, most: int, *, is_log_x: bool
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the points to draw; where the axis is logarithmic, those behind 0."""
    if is_log_x:
        x, y = x[x > 0], y[x > 0]
        kept = thin(x / x[0] if len(x) else x, y, most=most, is_log=True)
    else:
        kept = thin(x, y, most=most)
    return np.asarray(x[kept], np.float32), np.asarray(y[kept], np.float32)
