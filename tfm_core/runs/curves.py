"""Reading the events of a run while they are being written, and the curves they make."""

from __future__ import annotations

import json
import threading
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
)
MEASURED_COLUMNS = ("step", "loss", "accuracy", "sequence_accuracy")


class EventReader:
    """Reads an events file on and on: each ``read`` returns what is new since the last one."""

    def __init__(self, path: Path) -> None:
        """Begin at the first record of a file, which need not exist yet."""
        self.path = path
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new complete records; torn and garbled lines are left out. Never raises.

        A record ``{"event": "resumed", "step": k}`` means: forget every record of a step > k.
        A file that became shorter is read from its beginning, behind such a record with k = -1.
        """
        try:
            with self.path.open("rb") as file:
                start_over = file.seek(0, 2) < self._offset
                if start_over:
                    self._offset = 0
                file.seek(self._offset)
                content = file.read()
        except OSError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        records: list[dict[str, Any]] = [{"event": "resumed", "step": -1}] if start_over else []
        for line in whole.splitlines():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and isinstance(record.get("event"), str):
                records.append(record)
        return records


class Series:
    """Rows of numbers by ascending step; ``series["loss"]`` is float32, NaN where unknown."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        """Start empty; ``columns`` are the keys of a record that are kept, ``step`` among them."""
        self.columns = columns
        self._rows = {name: array("d") for name in columns}
        self._arrays: dict[str, Floats] = {}

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows["step"])

    def __getitem__(self, column: str) -> Floats:
        """Return a column, (rows,). Raises KeyError for a name that is not in ``columns``."""
        if column not in self._arrays:
            self._arrays[column] = np.array(self._rows[column], np.float32)
        return self._arrays[column]

    def last(self, column: str) -> float | None:
        """Return the newest value in full precision, or None where there is none."""
        row = self._rows[column]
        return row[-1] if row and row[-1] == row[-1] else None

    def add(self, record: dict[str, Any]) -> None:
        """Add a record; one without a step, or not behind the last one, takes nothing away."""
        step = record.get("step")
        if isinstance(step, bool) or not isinstance(step, int):
            return
        self.forget_after(step - 1)
        for name, row in self._rows.items():
            value = record.get(name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            row.append(float(value) if is_number and value is not None else float("nan"))
        self._arrays.clear()

    def forget_after(self, step: int) -> None:
        """Drop the rows behind a step."""
        keep = bisect_right(self._rows["step"], step)
        if keep < len(self):
            for row in self._rows.values():
                del row[keep:]
            self._arrays.clear()


class Curves:
    """All that the events of a run say, kept up to date by ``update``; safe to share by threads.

    ``steps`` (STEP_COLUMNS), ``validation`` and ``test`` (MEASURED_COLUMNS) are series of float32
    columns; ``started`` and ``finished`` are the records of these events, or empty.
    """

    def __init__(self, reader: EventReader) -> None:
        """Start empty; ``update`` reads."""
        self.steps = Series(STEP_COLUMNS)
        self.validation = Series(MEASURED_COLUMNS)
        self.test = Series(MEASURED_COLUMNS)
        self.started: dict[str, Any] = {}
        self.finished: dict[str, Any] = {}
        self.resumed: list[int] = []
        self._reader = reader
        self._lock = threading.Lock()

    def update(self) -> bool:
        """Read what is new; say whether there was anything."""
        with self._lock:
            records = self._reader.read()
            for record in records:
                self._take(record)
            return bool(records)

    def _take(self, record: dict[str, Any]) -> None:
        event = record["event"]
        if event == "step":
            self.steps.add(record)
        elif event == "measured" and record.get("split") in {"validation", "test"}:
            (self.validation if record["split"] == "validation" else self.test).add(record)
        elif event == "started":
            self.started = record
        elif event == "finished":
            self.finished = record
        elif event == "resumed" and isinstance(record.get("step"), int):
            self._go_back(record["step"])

    def _go_back(self, step: int) -> None:
        for series in (self.steps, self.validation, self.test):
            series.forget_after(step)
        self.finished = {}
        if step < 0:
            self.started = {}
            self.resumed = []
        else:
            self.resumed.append(step)
