"""Reading the events of a run while they are being written, and the curves they make."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.experiment import TURNABLE, Turn, turn_of
from tfm_core.reading import (
    MAX_STEP_NUMBER,
    Unreadable,
    is_device,
    is_line,
    is_number,
    is_text,
    is_whole,
    json_of,
    open_plain,
)

Floats = npt.NDArray[np.float32]

STEP_COLUMNS = (
    "step",
    "epoch",
    "loss",
    "accuracy",
    "learning_rate",
    "grad_norm",
    "examples_per_second",
    "memory_bytes",
    "seconds",
    "cpu_seconds",
    "balance",
)
MEASURED_COLUMNS = ("step", "loss", "accuracy", "sequence_accuracy")


class EventReader:
    """Reads an events file on and on: each ``read`` returns what is new since the last one."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        """Begin at the record at an offset of a file, which need not exist yet."""
        self.path = path
        self.offset = offset

    def read(self, most: int = -1) -> list[dict[str, Any]]:
        """Return the new complete records; torn and garbled lines are left out. Never raises.

        most: bytes to read at once, -1 for all that are there; ``batches`` reads on and on.

        Of a record all that is not of an event, or out of its range, is left out too.

        A record ``{"event": "resumed", "step": k}`` means: forget every record of a step > k.
        A file that became shorter is read from its beginning, behind such a record with k = -1.
        """
        try:
            with os.fdopen(open_plain(self.path), "rb") as file:
                start_over = file.seek(0, 2) < self.offset
                if start_over:
                    self.offset = 0
                file.seek(self.offset)
                content = file.read(most)
                while len(content) == most and b"\n" not in content:  # a line without an end
                    self.offset += most
                    content = file.read(most)
        except (OSError, Unreadable):
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self.offset += len(whole)
        records: list[dict[str, Any]] = [{"event": "resumed", "step": -1}] if start_over else []
        records += [
            record
            for values in _parsed(whole.splitlines())
            if (record := _valid_record(values)) is not None
        ]
        return records

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Yield what is new in parts of a bounded size. Never raises."""
        before = -1
        while self.offset != before:
            before = self.offset
            if records := self.read(_BATCH):
                yield records


def record_of(line: bytes) -> dict[str, Any] | None:
    """Return the valid fields of an event's line, or None for another line."""
    return _valid_record(_parsed_line(line))


def _parsed(lines: list[bytes]) -> list[Any]:
    """Return the values of lines: parsed as one array, in half the time, where each is one."""
    if all(len(line) <= _MAX_LINE for line in lines):
        try:
            values: list[Any] = json_of(b"[%s]" % b",".join(lines))
        except ValueError:
            values = []
        if len(values) == len(lines):
            return values
    return [_parsed_line(line) for line in lines]


def _parsed_line(line: bytes) -> object:
    """Return the value of a line, or None if it is invalid or too long."""
    if len(line) > _MAX_LINE:
        return None
    try:
        return json_of(line)
    except ValueError:
        return None


def _valid_record(values: object) -> dict[str, Any] | None:
    """Return the valid fields of a line's value, or None where it is no event."""
    if not isinstance(values, dict) or not is_line(values.get("event"), 40):
        return None
    record = {}
    for name, value in values.items():
        span = _SPANS.get(name)
        if span is not None and type(value) is float:  # nearly all: not worth a call each
            if span[0] <= value <= span[1]:
                record[name] = value
        elif (is_valid := _CHECKS.get(name)) is not None and is_valid(value):
            record[name] = value
    return record


def _is_count(value: object) -> bool:
    return is_whole(value, 0, 10**15)


def _is_share(value: object) -> bool:
    return is_number(value, *_SHARE)


def _is_measure(value: object) -> bool:
    return is_number(value, *_MEASURE)


def _is_words(value: object) -> bool:
    return value is None or is_text(value, _MAX_LINE)


def _are_norms(value: object) -> bool:
    """Return whether a value is norms by part of a model; None is one that was no number."""
    return isinstance(value, dict) and all(
        is_line(part, _MAX_PART) and (norm is None or is_number(norm, 0.0, 1e39))
        for part, norm in value.items()
    )


_MAX_LINE = 65_536  # bytes
_BATCH = 2**22  # bytes
_MAX_PART = 80  # letters
_SHARE = (0.0, 1.0)
_MEASURE = (-1e30, 1e30)  # what float32 can hold
_CHECKS: dict[str, Callable[[object], bool]] = {
    "event": lambda value: is_line(value, 40),
    "step": lambda value: is_whole(value, -1, MAX_STEP_NUMBER),
    "total_steps": lambda value: is_whole(value, 0, MAX_STEP_NUMBER),
    "best_step": lambda value: is_whole(value, 0, MAX_STEP_NUMBER),
    "steps_per_epoch": _is_count,
    "n_parameters": _is_count,
    "device": is_device,
    "split": lambda value: value in ("validation", "test"),
    "weights": lambda value: value in ("last", "average"),
    "reason": _is_words,
    "remark": _is_words,
    **dict.fromkeys(("accuracy", "sequence_accuracy", "chance", "ceiling"), _is_share),
    **dict.fromkeys(("epoch", "loss", "learning_rate", "grad_norm"), _is_measure),
    **dict.fromkeys(("examples_per_second", "memory_bytes", "seconds"), _is_measure),
    **dict.fromkeys(("cpu_seconds", "balance"), _is_measure),
    "gradients": _are_norms,
    "setting": lambda value: value in TURNABLE,
    "value": _is_measure,
    **dict.fromkeys(("start_loss", "floor", "reads_per_epoch"), _is_measure),
}


_SPANS = {
    name: _SHARE if is_valid is _is_share else _MEASURE
    for name, is_valid in _CHECKS.items()
    if is_valid in (_is_share, _is_measure)
}
"""The least and the most of what is measured, by name."""


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """How long each part's gradient was at a step, by name; infinite where it was no number."""

    step: int
    norms: dict[str, float]


def _norms(record: dict[str, Any]) -> GradientNorms:
    parts = record["gradients"].items()
    return GradientNorms(
        record["step"], {part: math.inf if norm is None else float(norm) for part, norm in parts}
    )


class Series:
    """Rows of numbers by ascending step; ``series["loss"]`` is float32, NaN where unknown.

    Never changes, so that two columns of one series always have the same length.
    """

    def __init__(self, columns: tuple[str, ...], rows: npt.NDArray[np.float64] | None = None):
        """Take rows (n, columns), by strictly ascending step, which is the first column."""
        self.columns = columns
        self._rows = np.empty((0, len(columns))) if rows is None else rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __getitem__(self, column: str) -> Floats:
        """Return a column, (rows,). Raises KeyError for a name that is not in ``columns``."""
        if column not in self.columns:
            raise KeyError(column)
        return self._rows[:, self.columns.index(column)].astype(np.float32)

    def last(self, column: str) -> float | None:
        """Return the newest value in full precision, or None."""
        if not len(self):
            return None
        value = float(self._rows[-1, self.columns.index(column)])
        return None if math.isnan(value) else value

    def with_records(self, records: list[dict[str, Any]]) -> Series:
        """Return the series with more rows; a row takes the place of all from its step on."""
        rows = [row for record in records if (row := self._row(record)) is not None]
        if not rows:
            return self
        kept: list[list[float]] = []
        for row in rows:
            while kept and kept[-1][0] >= row[0]:
                kept.pop()
            kept.append(row)
        before = self.up_to(kept[0][0] - 1)
        return Series(self.columns, np.concatenate([before._rows, np.array(kept)]))

    @property
    def rows(self) -> npt.NDArray[np.float64]:
        """The numbers in full precision, (rows, columns), not to be changed."""
        return self._rows

    def up_to(self, step: float) -> Series:
        """Return the series without the rows behind a step."""
        keep = int(np.searchsorted(self._rows[:, 0], step, side="right"))
        return self if keep == len(self) else Series(self.columns, self._rows[:keep])

    def _row(self, record: dict[str, Any]) -> list[float] | None:
        row = [
            value
            if type(value) is float
            else float(value)
            if isinstance(value, int) and not isinstance(value, bool)
            else math.nan
            for value in map(record.get, self.columns)
        ]
        return row if math.isfinite(row[0]) else None


def turns_in(path: Path) -> tuple[Turn, ...]:
    """Return the turns that a training must follow.

    Those after its last checkpoint count, too: a resumed training repeats them. A record
    ``{"event": "branched", "step": k}`` drops the turn that was last set for step k + 1; all
    turns, where k is -1.
    """
    turns: dict[Turn, None] = {}
    for records in EventReader(path).batches():
        for record in records:
            if record["event"] == "turned" and (turn := turn_of(record)) is not None:
                turns[turn] = None
            elif record["event"] == "branched":
                step = record.get("step", -1)
                if step < 0:
                    turns.clear()
                for turn in [turn for turn in turns if turn.step == step + 1][-1:]:
                    del turns[turn]
    return tuple(turns)


def lowest(measured: Series) -> int | None:
    """Return which row of a validation has the lowest loss after step 0, None without one."""
    losses = measured["loss"].astype(np.float64)
    losses[(measured["step"] == 0) | np.isnan(losses)] = math.inf
    if not np.isfinite(losses).any():
        return None
    return int(losses.argmin())


class Curves:
    """The curves and facts in a run's events so far, updated by ``extend``.

    ``steps`` (STEP_COLUMNS), ``validation`` and ``test`` (MEASURED_COLUMNS) are series of float32
    columns; ``averaged`` is the validation of averaged weights, empty where there are none;
    ``started``, ``compiled`` and ``finished`` are the records of these events, or empty;
    ``turns`` are the settings that changed during the training;
    ``resumed`` are the steps from which the training went on after a break; ``gradients`` the norms
    of each part's gradient, at the few steps that tell them.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.steps = Series(STEP_COLUMNS)
        self.validation = Series(MEASURED_COLUMNS)
        self.averaged = Series(MEASURED_COLUMNS)
        self.test = Series(MEASURED_COLUMNS)
        self.started: dict[str, Any] = {}
        self.finished: dict[str, Any] = {}
        self.compiled: dict[str, Any] = {}
        self.resumed: tuple[int, ...] = ()
        self.gradients: tuple[GradientNorms, ...] = ()
        self.turns: tuple[Turn, ...] = ()

    def extend(self, records: list[dict[str, Any]]) -> bool:
        """Take in what an EventReader read; return whether there was anything."""
        waiting: list[dict[str, Any]] = []
        for record in records:
            event = record["event"]
            if event == "started":
                self.started = record
            elif event == "compiled":
                self.compiled = record
            elif event == "finished":
                self.finished = record
            elif event == "turned":
                if (turn := turn_of(record)) is not None:
                    self.turns = (*self.turns, turn)
            elif event == "resumed":
                self._add(waiting)
                waiting = []
                self._go_back(record.get("step"))
            else:
                waiting.append(record)
        self._add(waiting)
        return bool(records)

    def copy(self) -> Curves:
        """Return the curves as they are now, for a thread that must not see them change."""
        return copy.copy(self)

    @property
    def unseen(self) -> Series:
        """The validation of the weights that count: of the averaged ones, where there are any."""
        return self.averaged if len(self.averaged) else self.validation

    def best_validation(self) -> int | None:
        """Return which row of ``unseen`` has the lowest loss after step 0, None without one."""
        return lowest(self.unseen)

    def tested(self, wanted: str) -> str | None:
        """Return which weights were tested: "best", "last" or "average"; None where none were.

        wanted: those that the config says; some recorded runs tested the last all the same.
        """
        step, best = self.test.last("step"), self.best_validation()
        if step is None:
            return None
        if wanted == "best" and best is not None and step == self.unseen["step"][best]:
            return "best"
        return "average" if wanted == "average" else "last"

    def _add(self, records: list[dict[str, Any]]) -> None:
        measured = [record for record in records if record["event"] == "measured"]
        steps = [record for record in records if record["event"] == "step"]
        self.steps = self.steps.with_records(steps)
        norms = [_norms(record) for record in steps if "gradients" in record and "step" in record]
        if norms:
            self._drop_gradients(norms[0].step - 1)
            self.gradients += tuple(norms)
        self.validation = self.validation.with_records(
            [record for record in measured if _is_validation(record, "last")]
        )
        self.averaged = self.averaged.with_records(
            [record for record in measured if _is_validation(record, "average")]
        )
        self.test = self.test.with_records(
            [record for record in measured if record.get("split") == "test"]
        )

    def _drop_gradients(self, step: int) -> None:
        self.gradients = tuple(norms for norms in self.gradients if norms.step <= step)

    def _go_back(self, step: object) -> None:
        if not isinstance(step, int):
            return
        self.steps = self.steps.up_to(step)
        self._drop_gradients(step)
        self.turns = tuple(turn for turn in self.turns if turn.step <= step)
        self.validation = self.validation.up_to(step)
        self.averaged = self.averaged.up_to(step)
        self.test = self.test.up_to(step)
        self.finished = {}
        self.compiled = {}
        if step < 0:
            self.started = {}
            self.resumed = ()
        else:
            self.resumed = (*self.resumed, step)


def _is_validation(record: dict[str, Any], weights: str) -> bool:
    return record.get("split") == "validation" and record.get("weights", "last") == weights
