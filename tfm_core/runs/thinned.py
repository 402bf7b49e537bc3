"""The thinned curves of a long run, stored beside its events so that pages open at once.

``curves.safetensors`` has the content of the events up to an offset. Any reader of a long file of
events may write it: the worker when it saves, an import, a page. It is recreated if it is missing,
damaged, or of other events. ``thin`` chooses the steps to keep; all validations and tests stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from tfm_core.choices.config.experiment import turn_of
from tfm_core.reading import (
    MAX_STEP_NUMBER,
    Unreadable,
    is_plain,
    is_whole,
    json_of,
    open_plain,
    open_tensors,
)
from tfm_core.runs.curves import (
    MEASURED_COLUMNS,
    STEP_COLUMNS,
    Curves,
    EventReader,
    GradientNorms,
    Series,
)
from tfm_core.runs.disk.atomic import write_bytes

FILE = "curves.safetensors"
EVENTS = "events.jsonl"

MAX_STEPS = 4_000
"""Curves with at most so many steps are stored whole."""

LONG_FILE = 2**20
"""Curves of events above so many bytes are stored."""

_FIRST, _INTERVALS, _WIDE_INTERVALS = 100, 1_500, 150
_LOCAL_EXTREMES = ("loss", "accuracy", "grad_norm")
_MAX_GRADIENTS = 1_000
_MAX_FILE = 2**28  # bytes
_TAIL = 2**12  # bytes
_FORM = 1
_SERIES = {
    "steps": STEP_COLUMNS,
    "validation": MEASURED_COLUMNS,
    "averaged": MEASURED_COLUMNS,
    "test": MEASURED_COLUMNS,
}
_RECORDS = ("started", "compiled", "finished")

Rows = npt.NDArray[np.intp]


def thin(series: Series) -> Series:
    """Return a series with fewer rows, each as it was; one of up to MAX_STEPS rows whole.

    These stay: the first 100 rows, where the curve is steep; the first of each of 1,500 equal
    intervals of steps; the last; the lowest and the highest value of each column, and those of
    loss, accuracy and gradient in each of 150 intervals.
    """
    rows = series.rows
    if len(rows) <= MAX_STEPS:
        return series
    span = (rows[:, 0] - rows[0, 0]) / (rows[-1, 0] - rows[0, 0])
    begins = np.flatnonzero(np.diff(np.floor(span * _INTERVALS), prepend=-1))
    kept = [np.arange(_FIRST), begins, np.array([len(rows) - 1])]
    for column in range(1, len(series.columns)):
        is_local = series.columns[column] in _LOCAL_EXTREMES
        wide = np.floor(span * _WIDE_INTERVALS) if is_local else np.zeros(len(rows))
        kept += [_lowest(rows[:, column], wide), _lowest(-rows[:, column], wide)]
    return Series(series.columns, rows[np.unique(np.concatenate(kept))])


def _lowest(values: npt.NDArray[np.float64], intervals: npt.NDArray[np.float64]) -> Rows:
    """Return which row has the lowest value in each interval; NaN counts as highest."""
    order = np.lexsort((values, intervals))  # NaN sorts behind all others
    begins = np.flatnonzero(np.diff(intervals[order], prepend=-1))
    lowest = order[begins]
    return lowest[~np.isnan(values[lowest])]


class ThinnedReader:
    """Follows the events of a run: each ``read`` returns the curves as they are now."""

    def __init__(self, folder: Path) -> None:
        """Start from the stored curves, if any."""
        self.folder = folder
        self._reader, self._curves = _stored(folder) or (_reader(folder), Curves())
        self._is_thinned = self._reader.offset > 0

    def read(self) -> Curves:
        """Return the curves, not to be changed. Never raises."""
        before = self._reader.offset
        if not self._read_on():  # then nothing is left out until all is read again
            self._reader, self._curves, self._is_thinned = _reader(self.folder), Curves(), False
            self._read_on()
        self._thin()
        if self._reader.offset - before >= LONG_FILE:
            self.keep()
        return self._curves.copy()

    def keep(self) -> None:
        """Write the curves beside the events. Never raises: they can be read again."""
        with contextlib.suppress(OSError, Unreadable, ValueError):
            content = _content(self.folder, self._reader.offset, self._curves)
            write_bytes(self.folder / FILE, content)

    def _read_on(self) -> bool:
        """Take in what is new; False where the steps that count now were left out before."""
        for records in self._reader.batches():
            if self._is_thinned and any(record["event"] == "resumed" for record in records):
                return False
            self._curves.extend(records)
        return True

    def _thin(self) -> None:
        curves = self._curves
        if len(curves.steps) > MAX_STEPS:
            curves.steps, self._is_thinned = thin(curves.steps), True
        if len(curves.gradients) > 2 * _MAX_GRADIENTS:
            every = len(curves.gradients) // _MAX_GRADIENTS
            curves.gradients, self._is_thinned = curves.gradients[::every], True


def keep(folder: Path) -> None:
    """Update the thinned curves of a run with many events. Never raises."""
    try:
        size = (folder / EVENTS).lstat().st_size
    except OSError:
        return
    if size >= LONG_FILE:
        ThinnedReader(folder).read()


def _reader(folder: Path, offset: int = 0) -> EventReader:
    return EventReader(folder / EVENTS, offset)


def _mark(folder: Path, offset: int) -> str:
    """Return a hash of the bytes of the events before an offset. Raises OSError and Unreadable."""
    digest = hashlib.sha256()
    with os.fdopen(open_plain(folder / EVENTS), "rb") as file:
        digest.update(file.read(min(_TAIL, offset)))
        file.seek(max(0, offset - _TAIL))
        tail = file.read(min(_TAIL, offset))
    if len(tail) < min(_TAIL, offset):
        raise Unreadable("events.jsonl is shorter than it was")
    digest.update(tail)
    return digest.hexdigest()


def _content(folder: Path, offset: int, curves: Curves) -> bytes:
    """Return the file's content. Raises OSError and Unreadable if the events are gone."""
    records: dict[str, Any] = {name: getattr(curves, name) for name in _RECORDS}
    records["resumed"] = curves.resumed
    records["turns"] = [asdict(turn) for turn in curves.turns]
    records["gradients"] = [
        {
            "step": gradient.step,
            "norms": {
                part: norm if np.isfinite(norm) else None for part, norm in gradient.norms.items()
            },
        }
        for gradient in curves.gradients
    ]
    facts = {"form": _FORM, "offset": offset, "mark": _mark(folder, offset), "columns": _SERIES}
    tensors = {name: np.ascontiguousarray(getattr(curves, name).rows) for name in _SERIES}
    return save(tensors, {"facts": json.dumps(facts), "told": json.dumps(records)})


def _stored(folder: Path) -> tuple[EventReader, Curves] | None:
    """Return the stored curves and a reader of the newer events, or None."""
    path = folder / FILE
    try:
        if not is_plain(path) or path.lstat().st_size > _MAX_FILE:
            return None
        with open_tensors(path) as file:
            metadata = file.metadata() or {}
            facts, records = json_of(metadata["facts"]), json_of(metadata["told"])
            offset, form = facts["offset"], facts["form"]
            if form != _FORM or facts["columns"] != json.loads(json.dumps(_SERIES)):
                return None
            if not is_whole(offset, 1, 2**60) or facts["mark"] != _mark(folder, offset):
                return None
            curves = Curves()
            for name, columns in _SERIES.items():
                rows = file.get_tensor(name)
                if not _are_rows(rows, len(columns)):
                    return None
                setattr(curves, name, Series(columns, rows))
        for name in _RECORDS:
            setattr(curves, name, dict(records[name]))
        curves.resumed = tuple(int(step) for step in records["resumed"])
        turns = (turn_of(record) for record in records.get("turns", ()))
        curves.turns = tuple(turn for turn in turns if turn is not None)
        curves.gradients = tuple(
            GradientNorms(
                int(gradient["step"]),
                {
                    str(part): np.inf if norm is None else float(norm)
                    for part, norm in gradient["norms"].items()
                },
            )
            for gradient in records["gradients"]
        )
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
    ):  # another's file
        return None
    return _reader(folder, offset), curves


def _are_rows(rows: npt.NDArray[Any], n_columns: int) -> bool:
    """Return whether an array is rows of numbers by ascending step."""
    if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != n_columns:
        return False
    steps = rows[:, 0]
    is_in_range = not len(steps) or (steps[0] >= -1 and steps[-1] <= MAX_STEP_NUMBER)
    return bool(is_in_range and np.isfinite(steps).all() and (np.diff(steps) > 0).all())
