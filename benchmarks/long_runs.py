"""A run of 200,000 steps: reading its thinned curves against reading all of its events."""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.report import Table
from benchmarks.timing import TimeRange
from tfm_core.presets import PRESETS
from tfm_core.runs.record.thinned import FILE
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

STEPS = 200_000


def tables(*, quick: bool) -> Iterator[Table]:
    """Write the events of a long run, and read its curves in turn in each way."""
    steps, rounds = (20_000, 2) if quick else (STEPS, 7)
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder), recorded=None)
        run = store.create(PRESETS["copy"].experiment, state="finished")
        with (run.folder / "events.jsonl").open("w", encoding="utf-8") as file:
            for step in range(1, steps + 1):
                row = {"event": "step", "step": step, "loss": 2 / step**0.5, "accuracy": 0.5,
                       "learning_rate": 1e-3, "grad_norm": 1.0, "seconds": step / 100}  # fmt: skip
                file.write(json.dumps(row) + "\n")
        size = (run.folder / "events.jsonl").stat().st_size

        def anew() -> object:
            (run.folder / FILE).unlink(missing_ok=True)
            return run.thinned_curves()

        ways: dict[str, Callable[[], object]] = {
            "all events": lambda: Run(run.folder).curves(),
            "thinned, made anew": anew,
            "thinned, kept beside the events": lambda: Run(run.folder).thinned_curves(),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _round in range(rounds):
            for name, read in ways.items():
                begin = time.process_time()
                read()
                taken[name].append(1000 * (time.process_time() - begin))
        peaks = {name: _peak(read) for name, read in ways.items()}
    whole = taken["all events"]
    rows = [
        [
            name,
            TimeRange.of(taken[name]).show(digits=0),
            f"{TimeRange.of([a / b for a, b in zip(whole, taken[name], strict=True)]).median:.1f}x",
            f"{peaks[name] / 2**20:.0f}",
        ]
        for name in ways
    ]
    yield Table(
        f"The curves of a run of {steps:,} steps ({size / 1e6:.0f} MB of events)",
        ["read", "CPU-ms", "as fast as all events", "peak of Python's memory, MiB"],
        rows,
        [f"{rounds} rounds, in turn."],
        {},
    )


def _peak(read: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
