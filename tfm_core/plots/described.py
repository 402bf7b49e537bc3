"""What a figure shows, in sentences for a screen reader, computed from its own numbers."""

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
    """Return sentences on axes, ends and extremes of a figure's lines, points, bars and maps."""
    read = [trace for trace in figure.data if trace.hoverinfo != "skip" and _size(trace)]
    if not read:
        return N_("Nothing is drawn yet.")
    sentences = [_axes(figure), *(_trace(figure, trace) for trace in read[:MAX_TRACES])]
    if len(read) > MAX_TRACES:
        sentences.append(N_("And {n} more.", n=len(read) - MAX_TRACES))
    return joined(*filter(None, sentences))


Values = Sequence[Any] | npt.NDArray[Any]


def line(name: str, x: Values, y: Values, *, is_share: bool = False) -> Sentence:
    """Return where a line begins and ends, and its extremes.

    x: numbers or texts; y: numbers, of which None and NaN are gaps.
    is_share: values are 0 to 1 and are read as per cent.
    """
    values = _numbers(y)
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return N_("{name}: no values yet.", name=name)

    def value(i: int) -> str:
        return percent(float(values[i])) if is_share else number(values[i])

    first, last = int(known[0]), int(known[-1])
    low, high = (int(known[pick(values[known])]) for pick in (np.argmin, np.argmax))
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


def _axes(figure: go.Figure) -> Sentence | None:
    across, up = (axis.title.text for axis in (figure.layout.xaxis, figure.layout.yaxis))
    if across and up:
        return N_("Across: {x}. Up: {y}.", x=_plain(across), y=_plain(up))
    return N_("Across: {x}.", x=_plain(across)) if across else None


def _trace(figure: go.Figure, trace: Any) -> Sentence:
    if trace.type == "treemap":
        return _tree(trace)
    name = _name(figure, trace)
    if trace.type == "heatmap":
        return _map(figure, trace, name)
    if trace.type == "image":
        height, width = np.shape(trace.z)[:2]
        return N_("{name}: {n} by {m} pixels.", name=name, n=width, m=height)
    if trace.type == "bar":
        return _bars(figure, trace, name)
    x, y = range(len(trace.y)) if trace.x is None else trace.x, trace.y
    is_flat = _is_text(y) and not _is_text(x)  # numbers across, texts up
    of, values = (y, x) if is_flat else (x, y)
    if trace.type == "scatter" and (len(y) == 1 or "lines" in (trace.mode or "lines")):
        if _is_text(values):
            return _count(name, len(y))
        axis = _axis(figure, trace, "x" if is_flat else "y")
        return line(name, of, values, is_share=_is_share(axis))
    return _points(name, x, y)


def _map(figure: go.Figure, trace: Any, name: str) -> Sentence:
    cells = np.asarray(
        [_numbers(row) for row in trace.z] if not isinstance(trace.z, np.ndarray) else trace.z,
        np.float64,
    )
    rows, columns = cells.shape
    known = np.isfinite(cells)
    if not known.any():
        return N_("{name}: no values yet.", name=name)
    high = np.unravel_index(np.where(known, cells, -np.inf).argmax(), cells.shape)
    low = np.unravel_index(np.where(known, cells, np.inf).argmin(), cells.shape)
    if cells[high] == cells[low]:
        return N_(
            "{name}: {rows} rows, {columns} columns, all {value}.",
            name=name,
            rows=rows,
            columns=columns,
            value=number(cells[high]),
        )
    return N_(
        "{name}: {rows} rows, {columns} columns; largest {high} in row {row}, column {column}; "
        "smallest {low}.",
        name=name,
        rows=rows,
        columns=columns,
        high=number(cells[high]),
        row=_label(figure, trace, "y", int(high[0])),
        column=_label(figure, trace, "x", int(high[1])),
        low=number(cells[low]),
    )


def _tree(trace: Any) -> Sentence:
    """Return the whole of a tree and its largest leaf."""
    leaves = set(trace.ids) - set(trace.parents)
    value, leaf = max(
        (value, name) for name, value in zip(trace.ids, trace.values, strict=True) if name in leaves
    )
    return N_(
        "{n} parts of {total}; the largest is {leaf} with {value}.",
        n=len(leaves),
        total=number(max(trace.values)),
        leaf=leaf,
        value=number(value),
    )


def _bars(figure: go.Figure, trace: Any, name: str) -> Sentence:
    is_flat = trace.orientation == "h"
    values = _numbers(trace.x if is_flat else trace.y)
    letter = "y" if is_flat else "x"
    axis = _axis(figure, trace, "x" if is_flat else "y")
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return N_("{name}: no values yet.", name=name)
    low, high = (int(known[pick(values[known])]) for pick in (np.argmin, np.argmax))
    said = [
        percent(float(v)) if _is_share(axis) else number(v) for v in (values[low], values[high])
    ]
    if low == high:
        at = _label(figure, trace, letter, high)
        return Sentence(ONE_VALUE, {"name": name, "value": said[1], "at": at})
    return N_(
        "{name}, {n} bars: highest {high} at {high_at}, lowest {low} at {low_at}.",
        name=name,
        n=len(known),
        high=said[1],
        high_at=_label(figure, trace, letter, high),
        low=said[0],
        low_at=_label(figure, trace, letter, low),
    )


def _points(name: str, x: Values, y: Values) -> Sentence:
    ends = [_ends(values) for values in (x, y)]
    if None in ends:
        return _count(name, len(y))
    (left, right), (low, high) = (pair for pair in ends if pair is not None)
    return N_(
        "{name}, {n} points: across from {left} to {right}, up from {low} to {high}.",
        name=name,
        n=len(y),
        left=left,
        right=right,
        low=low,
        high=high,
    )


def _count(name: str, n: int) -> Sentence:
    return counted("{name}: {n} point.", "{name}: {n} points.", n, name=name)


def _ends(values: Values) -> tuple[str, str] | None:
    """Return the lowest and the highest number; None for texts."""
    if _is_text(values):
        return None
    known = _numbers(values)
    known = known[np.isfinite(known)]
    return (number(known.min()), number(known.max())) if len(known) else None


def _is_text(values: Values) -> bool:
    try:
        _numbers(values)
    except (TypeError, ValueError):
        return True
    return False


def _size(trace: Any) -> int:
    letter = {"heatmap": "z", "image": "z", "treemap": "values"}.get(trace.type, "y")
    values = trace[letter]
    return 0 if values is None else len(values)


def _name(figure: go.Figure, trace: Any) -> str:
    """Return what a trace is called: its name, else what its values are."""
    if trace.name:
        return _plain(trace.name)
    if trace.type == "heatmap":
        return _plain(trace.colorbar.title.text or N_("Map"))
    if trace.type == "image":
        return N_("Picture")
    letter = "x" if trace.type == "bar" and trace.orientation == "h" else "y"
    axis = None if trace.type == "scatter3d" else _axis(figure, trace, letter)
    return _plain((axis is not None and axis.title.text) or N_("Values"))


def _axis(figure: go.Figure, trace: Any, letter: str) -> Any:
    """Return the axis of a trace. letter: ``x`` or ``y``."""
    which = getattr(trace, f"{letter}axis", None) or letter
    return figure.layout[f"{letter}axis{which[1:]}"]


def _label(figure: go.Figure, trace: Any, letter: str, at: int) -> str:
    """Return what an axis says at the place of a cell or a bar."""
    values = getattr(trace, letter)
    place = at if values is None else values[at]
    axis = _axis(figure, trace, letter)
    texts = axis.ticktext
    if texts is not None and axis.tickvals is not None:
        for value, text in zip(axis.tickvals, texts, strict=False):
            if value == place and text:
                return _plain(str(text))
    return _place(place)


def _place(value: Any) -> str:
    """Return a place on an axis; rows and columns count from where the axis does."""
    if isinstance(value, str | bytes) or value is None:
        return _plain(str(value))
    return number(value)


def _is_share(axis: Any) -> bool:
    return bool(axis.tickformat and axis.tickformat.endswith("%"))


def _numbers(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return (n,) float64; what is unknown is NaN."""
    if isinstance(values, np.ndarray):
        return np.asarray(values, np.float64)
    return np.array([math.nan if value is None else value for value in values], np.float64)


def _plain(text: str) -> str:
    """Return a text without plotly's marks; a sentence without marks stays one."""
    bare = html.unescape(_MARKUP.sub(" ", text)).strip()
    return text if bare == text else bare
