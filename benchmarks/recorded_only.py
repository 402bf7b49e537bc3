"""A server of recorded runs alone: its start and its memory.

It runs as on a small host (``TFM_RECORDED_ONLY=1``); sessions are open pages, each with a
connection of its own, which read all that a browser reads (``benchmarks.crowd``).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import Served, serve
from benchmarks.timing import TimeRange

SESSIONS = (1, 20)
RUNS = "recorded-korean", "recorded-digits", "recorded-captions"
"""Whose pages they open, one after the other: all have many snapshots or pictures."""
ARRIVE_SECONDS = 2.0

START, MEMORY = "recorded only: start", "recorded only: memory"
"""Goals."""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Start the server several times, each with all sessions."""
    seconds, memory = [], []
    for _ in range(2 if quick else 5):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            with serve(Path(folder), {"TFM_RECORDED_ONLY": "1"}) as served:
                seconds.append(time.perf_counter() - begin)
                memory.append([_megabytes(served), *(_after(served, n) for n in SESSIONS)])
    start = TimeRange.of(seconds)
    rows = [
        [
            "from the start of the process to an answer, s",
            start.show(),
            goal_cell(START, start.median),
        ]
    ]
    names = "cold", *(f"with {n} {'session' if n == 1 else 'sessions'}" for n in SESSIONS)
    most = 0.0
    for name, values in zip(names, zip(*memory, strict=True), strict=True):
        spread = TimeRange.of(list(values))
        most = spread.median
        verdict = goal_cell(MEMORY, most) if name == names[-1] else ""
        rows.append([f"memory {name}, MB", spread.show(digits=0), verdict])
    yield Table(
        "A server of recorded runs alone",
        ["", "measured", "target"],
        rows,
        [f"{len(seconds)} starts. Memory is the resident set of the server's one process."],
        {START: Figure(start.median), MEMORY: Figure(most)},
    )


def _after(served: Served, n: int) -> float:
    """Return the server's memory while so many sessions are on a page, of each run in turn."""
    found = []
    for run in RUNS:
        with served.crowd(run, n, ARRIVE_SECONDS) as seen:
            found.append(_megabytes(served))
        if seen["n_failed"]:
            raise RuntimeError(f"A session was not answered: {seen['problem']}")
    return max(found)


def _megabytes(served: Served) -> float:
    return float(served.process.memory_info().rss) / 1e6
