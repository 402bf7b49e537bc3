"""Measurements that came with the app: what a page of speed can show before anything is measured.

Their lines are those of the measuring process; before them stands one that says of what and where.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tfm_core.inspect.speed.report import Report
from tfm_core.runs.store import RECORDED

PRESET = "translate"
"""The model that was measured."""
DEVICE = "cpu"
MEASURED = ("attention", "checkpointing")
"""The comparisons that were: they count CPU-seconds, which a busy machine hardly changes."""


@dataclass(frozen=True, slots=True)
class RecordedReport:
    """A report, the PyTorch that it was measured with, and the day."""

    report: Report
    torch: str
    day: str


def recorded(name: str) -> RecordedReport | None:
    """Return what was recorded of a comparison; None where nothing was."""
    path = RECORDED / f"speed-{name}.jsonl"
    if not path.is_file():
        return None
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    said = json.loads(first)
    report = Report(name, DEVICE, said["clock"])
    for line in lines:
        report.take(line)
    return RecordedReport(report, said["torch"], said["day"])
