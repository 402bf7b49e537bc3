"""What a figure shows, in sentences for a screen reader, made from the numbers that are drawn."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.sentences import N_, Sentence, counted, joined, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

MAX_TRACES = 5
"""Traces that are described one by one; a person hears no more."""
ONE_VALUE = N_("{name}: {value} at {at}.")
LINE = N_("{name}: from {first} at {start} to {last} at {end}.")
LINE_AND_EXTREMES = N_(
    "{name}: from {first} at {start} to {last} at {end}; "
    "lowest {low} at {low_at}, highest {high} at {high_at}."
)
"""Templates, which ``stage_curves.js`` fills too."""
_MARKUP = re.compile(r"(?:\s*</?(?:br|b|i|em|sub|sup|span|a)\b[^>]*>\s*)+")


def described(figure: go.Figure) -> Sentence:
    """Return what its axes are, and what its first traces show.

    Traces that the pointer does not read are aids of the eye, and are left out.
    """
    numbers = {"heatmap": "z", "image": "z", "treemap": "values"}
    traces = [
        trace
        for trace in figure.data
        if trace.hoverinfo != "skip" and np.size(trace[numbers.get(trace.type, "y")])
    ]
    if not traces:
        return N_("Nothing is drawn yet.")
    x, y = (_title(axis) for axis in (figure.layout.xaxis, figure.layout.yaxis))
    has_panels = "xaxis2" in figure.layout.to_plotly_json()  # each of which has a name
    spoken = [_of_trace(trace, figure.layout, has_panels) for trace in traces[:MAX_TRACES]]
    if x and not has_panels:
        spoken.insert(
            0,
            N_("Horizontal axis: {x}. Vertical axis: {y}.", x=x, y=y)
            if y
            else N_("Horizontal axis: {x}.", x=x),
        )
    if len(traces) > MAX_TRACES:
        spoken.append(N_("And {n} more.", n=len(traces) - MAX_TRACES))
    return joined(*spoken)


def _title(axis: Any) -> str:
    return plain(axis.title.text or "")


def _of_trace(trace: Any, layout: Any, has_panels: bool) -> Sentence:
    """Return what a trace shows, by its name or that of its numbers.

    has_panels: what is beside others has the name of its panel, which stands on the x axis.
    """
    if trace.type == "treemap":
        return _tree(trace)
    if trace.type == "image":
        height, width = np.shape(trace.z)[:2]
        return N_("{name}: {n} by {m} pixels.", name=N_("Picture"), n=width, m=height)
    if trace.type == "scatter3d":  # its axes are those of a scene
        return scatter(trace.name, trace.x, trace.y)
    x, y = (layout[f"{axis[0]}axis{axis[1:]}"] for axis in (trace.xaxis or "x", trace.yaxis or "y"))
    if trace.type == "heatmap":
        name = (
            _title(x) if has_panels else plain(trace.name or trace.colorbar.title.text or N_("Map"))
        )
        return cells(name, trace.z, (trace.y, y), (trace.x, x))
    is_flat = trace.type == "bar" and trace.orientation == "h"
    name = plain(trace.name or "") or _title(x if is_flat or has_panels else y) or N_("Values")
    is_share = ((x if is_flat else y).tickformat or "").endswith("%")
    if trace.type == "bar":
        places, values = ((trace.y, y), trace.x) if is_flat else ((trace.x, x), trace.y)
        return bars(name, places, values, is_share=is_share)
    has_line = "lines" in (trace.mode or "") if trace.type == "scatter" else False
    return scatter(name, trace.x, trace.y, has_line=has_line, is_share=is_share)


def _tree(trace: Any) -> Sentence:
    """Return how many parts a tree has, and its largest."""
    parents = set(trace.parents)
    sizes = dict(zip(trace.ids, trace.values, strict=True))
    leaves = [path for path in sizes if path not in parents]
    leaf = max(leaves, key=lambda path: (sizes[path], path))
    return N_(
        "{n} parts of {total}; the largest is {leaf} with {value}.",
        n=len(leaves),
        total=number(trace.values[0]),
        leaf=leaf,
        value=number(sizes[leaf]),
    )


Values = Sequence[Any] | npt.NDArray[Any]


def line(name: str, x: Values, y: Values, *, is_share: bool = False) -> Sentence:
    """Return where a line begins and ends, and its extremes.

    x: numbers or texts; y: numbers, of which None and NaN are gaps.
    is_share: values are 0 to 1 and are read as per cent.
    """
    values = _numbers(y)
    finite = np.flatnonzero(np.isfinite(values))
    if not len(finite):
        return N_("{name}: no values yet.", name=name)

    def value(i: int) -> str:
        return percent(float(values[i])) if is_share else number(values[i])

    first, last = int(finite[0]), int(finite[-1])
    low, high = (int(finite[pick(values[finite])]) for pick in (np.argmin, np.argmax))
    if first == last:
        return Sentence(ONE_VALUE, {"name": name, "value": value(last), "at": _place(x[last])})
    ends = {
        "name": name,
        "first": value(first),
        "start": _place(x[first]),
        "last": value(last),
        "end": _place(x[last]),
    }
    if {low, high} <= {first, last}:
        return Sentence(LINE, ends)
    extremes = {
        "low": value(low),
        "low_at": _place(x[low]),
        "high": value(high),
        "high_at": _place(x[high]),
    }
    return Sentence(LINE_AND_EXTREMES, ends | extremes)


def number(value: Any) -> str:
    """Return a number as it is read aloud: three digits, whole numbers with separators."""
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    if value.is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def scatter(
    name: str, x: Values, y: Values, *, has_line: bool = False, is_share: bool = False
) -> Sentence:
    """Return where a line begins and ends, and its extremes; of points, how far they reach.

    Where y are texts, the numbers run to the right. is_share: numbers are read as per cent.
    """
    positions, values = (y, x) if _is_text(y) and not _is_text(x) else (x, y)
    if has_line or len(y) == 1:
        if _is_text(values):
            return _count(name, len(y))
        return line(name, positions, values, is_share=is_share)
    ends = [_ends(axis) for axis in (x, y)]
    if None in ends:
        return _count(name, len(y))
    (left, right), (low, high) = (pair for pair in ends if pair is not None)
    return N_(
        "{name}, {n} points: {left} to {right} horizontally, {low} to {high} vertically.",
        name=name,
        n=len(y),
        left=left,
        right=right,
        low=low,
        high=high,
    )


def cells(name: str, values: Values, y: Axis, x: Axis) -> Sentence:
    """Return the size of a map (rows, columns), and its extremes."""
    numbers = np.asarray(values, np.float64)
    rows, columns = numbers.shape
    finite = np.isfinite(numbers)
    if not finite.any():
        return N_("{name}: no values yet.", name=name)
    high = np.unravel_index(np.where(finite, numbers, -np.inf).argmax(), numbers.shape)
    low = np.unravel_index(np.where(finite, numbers, np.inf).argmin(), numbers.shape)
    size = {"name": name, "rows": rows, "columns": columns}
    if numbers[high] == numbers[low]:
        return N_(
            "{name}: {rows} rows, {columns} columns, all {value}.",
            value=number(numbers[high]),
            **size,
        )
    return N_(
        "{name}: {rows} rows, {columns} columns; largest {high} in row {row}, column {column}; "
        "smallest {low}.",
        high=number(numbers[high]),
        row=label(y, int(high[0])),
        column=label(x, int(high[1])),
        low=number(numbers[low]),
        **size,
    )


def bars(name: str, places: Axis, values: Values, *, is_share: bool = False) -> Sentence:
    """Return the highest and the lowest bar, and where they stand."""
    values = _numbers(values)
    finite = np.flatnonzero(np.isfinite(values))
    if not len(finite):
        return N_("{name}: no values yet.", name=name)
    low, high = (int(finite[pick(values[finite])]) for pick in (np.argmin, np.argmax))
    texts = [percent(float(v)) if is_share else number(v) for v in (values[low], values[high])]
    if low == high:
        at = label(places, high)
        return Sentence(ONE_VALUE, {"name": name, "value": texts[1], "at": at})
    return N_(
        "{name}, {n} bars: highest {high} at {high_at}, lowest {low} at {low_at}.",
        name=name,
        n=len(finite),
        high=texts[1],
        high_at=label(places, high),
        low=texts[0],
        low_at=label(places, low),
    )


def _count(name: str, n: int) -> Sentence:
    return counted("{name}: {n} point.", "{name}: {n} points.", n, name=name)


def _ends(values: Values) -> tuple[str, str] | None:
    """Return the lowest and the highest number; None for texts."""
    if _is_text(values):
        return None
    finite = _numbers(values)
    finite = finite[np.isfinite(finite)]
    return (number(finite.min()), number(finite.max())) if len(finite) else None


def _is_text(values: Values) -> bool:
    try:
        _numbers(values)
    except (TypeError, ValueError):
        return True
    return False


Axis = tuple[Values | None, Any]
"""The places along an axis, None for 0, 1, …; and its layout, whose ticks may name places."""


def label(axis: Axis, at: int) -> str:
    """Return what an axis says at the place of a cell or a bar."""
    places, settings = axis
    place = at if places is None else places[at]
    names = dict(zip(settings["tickvals"] or (), settings["ticktext"] or (), strict=False))
    return _place(names.get(place) or place)


def _place(value: Any) -> str:
    """Return a place on an axis; rows and columns count from where the axis does."""
    if isinstance(value, str | bytes) or value is None:
        return plain(str(value))
    return number(value)


def _numbers(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return (n,) float64; what is unknown is NaN."""
    if isinstance(values, np.ndarray):
        return np.asarray(values, np.float64)
    return np.array([math.nan if value is None else value for value in values], np.float64)


def plain(text: str) -> str:
    """Return a text without plotly's marks; a sentence without marks stays one."""
    bare = html.unescape(_MARKUP.sub(" ", text)).strip()
    return text if bare == text else bare
