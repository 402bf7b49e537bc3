"""The curves of a run as lines that are only added: watchers fetch only what is new.

A line is a JSON array whose first word says what it is of. ``["batch", step, loss, accuracy, mean
loss, mean accuracy]`` is a batch of training, with the running means that are drawn.
``["validation", step, loss, accuracy, whole sequences]`` is what was measured on unseen examples;
so are ``average``, of averaged weights, and ``test``; ``best`` is the validation to be ringed, and
takes the place of the one before. ``["back", step]`` takes all behind a step away: a training that
was interrupted goes on from there. Unknown values are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfm_core.plots.training.stage import WINDOW, smooth
from tfm_core.runs.curves import Curves, Series

Line = list[Any]
"""A word, then numbers or None."""


class CurveLines:
    """Turns the events of a run, as they are read, into lines."""

    def __init__(self, *, is_patient: bool = False) -> None:
        """Begin with none. is_patient: whether the best validation counts."""
        self.curves = Curves()
        self._is_patient = is_patient
        self._written: dict[str, float] = {}  # the last step of each kind of line
        self._best: Line | None = None

    def take(self, records: Sequence[dict[str, Any]]) -> list[Line]:
        """Return the lines that are new with these events."""
        if not records:
            return []
        back = [record.get("step") for record in records if record["event"] == "resumed"]
        self.curves.extend(list(records))
        lines: list[Line] = []
        if whole := [step for step in back if isinstance(step, int)]:
            lines.append(["back", min(whole)])
            self._written = {kind: min(at, min(whole)) for kind, at in self._written.items()}
            self._best = None
        lines += self._batches()
        for kind, series in (
            ("validation", self.curves.validation),
            ("average", self.curves.averaged),
            ("test", self.curves.test),
        ):
            lines += self._measured(kind, series)
        return lines + self._ringed()

    def _batches(self) -> list[Line]:
        steps = self.curves.steps
        losses, accuracies = steps["loss"], steps["accuracy"]
        columns = (losses, accuracies, smooth(losses, WINDOW), smooth(accuracies, WINDOW))
        return self._new("batch", steps, columns)

    def _measured(self, kind: str, series: Series) -> list[Line]:
        columns = tuple(series[name] for name in ("loss", "accuracy", "sequence_accuracy"))
        return self._new(kind, series, columns)

    def _new(self, kind: str, series: Series, columns: Sequence[Any]) -> list[Line]:
        """Return the rows behind the last step that was written."""
        steps = series["step"]
        first = int(np.searchsorted(steps, self._written.get(kind, -1.0), side="right"))
        if first < len(steps):
            self._written[kind] = float(steps[-1])
        return [
            [kind, int(steps[row]), *(_short(column[row]) for column in columns)]
            for row in range(first, len(steps))
        ]

    def _ringed(self) -> list[Line]:
        row = self.curves.best_validation() if self._is_patient else None
        if row is None:
            return []
        unseen = self.curves.unseen
        best: Line = [
            "best",
            int(unseen["step"][row]),
            _short(unseen["loss"][row]),
            _short(unseen["accuracy"][row]),
        ]
        if best == self._best:
            return []
        self._best = best
        return [best]


def _short(value: float) -> float | None:
    """Return a value with four digits, None where it is no number."""
    return float(f"{value:.4g}") if np.isfinite(value) else None
