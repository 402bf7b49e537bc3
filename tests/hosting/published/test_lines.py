"""The lines of a published run hold its curves, in whatever pieces they are read."""

from __future__ import annotations

import math
import random

import pytest

from tfm_core.hosting.published.lines import CurveLines, Line
from tfm_core.plots.training.stage import curve_lines
from tfm_core.runs.curves import Curves

STEPS = 61


def records(first: int = 1, last: int = STEPS, *, shift: float = 0.0) -> list[dict]:
    made: list[dict] = []
    for step in range(first, last + 1):
        loss = 3 * math.exp(-step / 17) + 0.1 * (step % 3) + shift
        made.append({"event": "step", "step": step, "loss": loss, "accuracy": step / 97})
        if step % 11 == 0:
            made += [
                {"event": "measured", "step": step, "split": "validation", "weights": weights,
                 "loss": loss + 0.5, "accuracy": step / 101, "sequence_accuracy": step / 103}
                for weights in ("last", "average")
            ]  # fmt: skip
    return made


def folded(lines: list[Line]) -> dict[str, list[list]]:
    """What a page makes of the lines: rows by kind."""
    rows: dict[str, list[list]] = {}
    for kind, step, *values in lines:
        if kind == "back":
            rows = {name: [row for row in its if row[0] <= step] for name, its in rows.items()}
        elif kind == "best":
            rows[kind] = [[step, *values]]
        else:
            rows.setdefault(kind, []).append([step, *values])
    return rows


COLUMNS = {
    ("batch", "loss"): ("batch", 1), ("batch", "accuracy"): ("batch", 2),
    ("training", "loss"): ("batch", 3), ("training", "accuracy"): ("batch", 4),
    ("validation", "loss"): ("validation", 1), ("validation", "accuracy"): ("validation", 2),
    ("whole", "accuracy"): ("validation", 3),
    ("average", "loss"): ("average", 1), ("average", "accuracy"): ("average", 2),
    ("average_whole", "accuracy"): ("average", 3),
    ("test", "loss"): ("test", 1), ("test", "accuracy"): ("test", 2),
    ("best", "loss"): ("best", 1), ("best", "accuracy"): ("best", 2),
}  # fmt: skip


def check(rows: dict[str, list[list]], told: list[dict]) -> None:
    """The rows are the points that the app's own stage draws of the same events."""
    curves = Curves()
    curves.extend(told)
    drawn = curve_lines(curves, has_wholes=True, is_patient=True)
    assert {line.role for line in drawn} >= {"batch", "training", "validation", "whole", "best"}
    for line in drawn:
        kind, column = COLUMNS[line.role, line.quantity]
        known = [(row[0], row[column]) for row in rows[kind]]
        assert known == list(zip(line.steps, line.values, strict=True)), line.role


@pytest.mark.parametrize("seed", range(5))
def test_they_are_the_stages_own_points_in_whatever_pieces_they_come(seed: int) -> None:
    told = [{"event": "started", "step": 0}, *records()]
    told.append({"event": "measured", "step": STEPS, "split": "test", "loss": 0.7})
    cuts = sorted(random.Random(seed).choices(range(len(told)), k=9))
    made = CurveLines(is_patient=True)
    lines: list[Line] = []
    for first, last in zip([0, *cuts], [*cuts, len(told)], strict=True):
        lines += made.take(told[first:last])
    check(folded(lines), told)


def test_what_a_resumed_training_forgets_the_lines_take_back() -> None:
    again = [{"event": "resumed", "step": 29}, *records(30, shift=0.25)]
    made = CurveLines(is_patient=True)
    lines = made.take(records(last=43)) + made.take(again)
    assert ["back", 29] in lines
    check(folded(lines), [*records(last=43), *again])


def test_both_sides_of_a_break_may_be_read_at_once() -> None:
    told = [*records(last=43), {"event": "resumed", "step": 29}, *records(30, shift=0.25)]
    made = CurveLines(is_patient=True)
    lines = made.take(records(last=7)) + made.take(told[len(records(last=7)) :])
    check(folded(lines), told)


def test_a_loss_that_is_no_number_is_null() -> None:
    lines = CurveLines().take([{"event": "step", "step": 1, "loss": math.nan, "accuracy": 0.5}])
    assert lines == [["batch", 1, None, 0.5, None, 0.5]]


def test_nothing_new_is_no_line() -> None:
    made = CurveLines()
    made.take(records())
    assert made.take([]) == []
