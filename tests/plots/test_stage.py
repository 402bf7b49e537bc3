"""The curves of a stage: thin, and true to what was measured."""

from __future__ import annotations

import math

from tfm_core.plots.stage import MAX_POINTS, curve_lines
from tfm_core.runs.curves import Curves


def curves(n: int) -> Curves:
    made = Curves()
    records = [
        {"event": "step", "step": k, "loss": math.exp(-k / n) + (k == 1234) * 7, "accuracy": k / n}
        for k in range(1, n + 1)
    ]
    for k in (0, n // 2, n):
        records.append({"event": "measured", "step": k, "split": "validation", "loss": 1.5 - k / n})
    made.extend(sorted(records, key=lambda record: record["step"]))
    return made


def test_long_curves_are_short_and_lose_no_spike() -> None:
    lines = curve_lines(curves(5000), has_wholes=True)
    batch = next(line for line in lines if (line.quantity, line.role) == ("loss", "batch"))
    assert len(batch.steps) <= 2 * MAX_POINTS
    assert batch.steps[0] == 1
    assert batch.steps[-1] == 5000
    assert max(value for value in batch.values if value is not None) > 7
    assert list(batch.steps) == sorted(set(batch.steps))


def test_what_was_never_measured_makes_no_line() -> None:
    roles = {(line.quantity, line.role) for line in curve_lines(curves(50), has_wholes=True)}
    assert ("loss", "validation") in roles
    assert not {("accuracy", "validation"), ("accuracy", "whole"), ("loss", "test")} & roles


def test_an_unknown_value_is_none_and_the_best_validation_stands_alone() -> None:
    made = curves(30)
    made.extend([{"event": "step", "step": 31, "loss": None}])
    lines = curve_lines(made, has_wholes=False, is_patient=True)
    batch = next(line for line in lines if (line.quantity, line.role) == ("loss", "batch"))
    assert batch.values[-1] is None
    best = next(line for line in lines if (line.quantity, line.role) == ("loss", "best"))
    assert (best.steps, best.values) == ((30,), (0.5,))
