"""How long the server takes to draw a list of a thousand runs."""

from __future__ import annotations

import json
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.report import Table
from benchmarks.served import serve
from benchmarks.timing import median_rows
from benchmarks.visitor import visitor
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore

N_RUNS, N_POINTS = 1_000, 1_000


def tables(*, quick: bool) -> Iterator[Table]:
    """Make the runs as workers would have left them, and open their list again and again."""
    n_runs, rounds = (100, 3) if quick else (N_RUNS, 12)
    with tempfile.TemporaryDirectory() as folder:
        runs = make_runs(RunStore(Path(folder) / "runs", recorded=None), n_runs, N_POINTS)
        with serve(Path(folder), {"TFM_WARM_WORKERS": "0"}) as served, visitor(served.url) as asks:
            asks.visit("")  # what every page needs is imported
            first = 1000 * asks.visit("runs")
            again = [1000 * asks.visit("runs") for _ in range(rounds)]
            changed = []
            for number in range(rounds):
                run = runs[number * 7 % len(runs)]
                served.store.label(run.id, tags=[f"tag {number}"])
                changed.append(1000 * asks.visit("runs"))
    rows, reached = median_rows(
        (
            ("the first time, every file read", "list of runs, at first", [first]),
            ("again", "list of runs, again", again),
            ("again, one run labelled since", "list of runs, one changed", changed),
        )
    )
    yield Table(
        f"The page Runs with {n_runs:,} runs of {N_POINTS:,} points",
        ["opened", "ms from the request to the end of the script", "target"],
        rows,
        [f"{rounds} visits each, by a client that draws nothing."],
        reached,
    )


def make_runs(store: RunStore, n_runs: int, n_points: int) -> list[Run]:
    """Write runs that differ in their heads, rates and seeds, each with its curves."""
    draw = random.Random(0)
    base = PRESETS["reverse"].experiment
    runs = []
    for number in range(n_runs):
        run = store.create(_varied(base, draw, number), state="finished", preset="reverse")
        total = run.experiment.training.steps
        write_status(
            run.folder, replace(run.status, step=total, seconds=draw.uniform(5, 500)), lasting=False
        )
        (run.folder / "events.jsonl").write_text(_events(draw, total, n_points))
        if number % 3 == 0:
            store.label(run.id, tags=[f"tag {number % 11}"], group=f"Group {number % 17}")
        runs.append(run)
    settled = time.time() - 60
    for path in store.root.rglob("*.json"):
        os.utime(path, (settled, settled))
    return runs


def _varied(base: Experiment, draw: random.Random, number: int) -> Experiment:
    model = base.model.model_dump() | {"n_heads": draw.choice([1, 2, 4])}
    training = base.training.model_dump() | {"learning_rate": draw.choice([3e-4, 1e-3, 3e-3])}
    return base.replace(model=model, training=training, seed=number)


def _events(draw: random.Random, total: int, n_points: int) -> str:
    lines = [{"event": "started", "step": 0, "total_steps": total, "n_parameters": 72_394}]
    steps = sorted({max(1, round(total * (k + 1) / n_points)) for k in range(n_points)})
    for step in steps:
        right = 1 - 0.9 * math.exp(-4 * step / total) * draw.uniform(0.9, 1)
        lines.append(
            {"event": "step", "step": step, "loss": 3 * (1 - right), "accuracy": right,
             "epoch": step / 100, "learning_rate": 1e-3, "grad_norm": 1.0,
             "examples_per_second": 1e4, "memory_bytes": 10**8}
        )  # fmt: skip
        if step % max(1, total // 10) == 0:
            measured = {"loss": 3 * (1 - right), "accuracy": right, "sequence_accuracy": right**5}
            lines.append({"event": "measured", "step": step, "split": "validation", **measured})
    return "".join(json.dumps(line) + "\n" for line in lines)
