"""The server's memory while the largest runs that it allows are looked at, page after page.

The model is small in parameters and large in attention: patches of one pixel, 16 heads, 2 layers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.served import ROOT, Served, serve
from benchmarks.visitor import visitor
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

SEED = 0
PATCH_1 = (  # 16,170 parameters; 785 tokens
    "task.name=mnist-5000", "task.n_validation=16", "model.family=vit", "model.patch_size=1",
    "model.d_model=16", "model.n_heads=16", "model.n_layers=2", "model.d_ff=32",
    "training.batch_size=2", "training.validate_every=4",
)  # fmt: skip
VIEWS = (
    ("train", ""),
    ("attention", ""),
    ("attention", "step=0"),
    ("attention", "step=1"),
    ("attention", "view=lines"),
    ("attention", "view=arithmetic"),
    ("attention", "deeper=heads"),
    ("attention", "deeper=compare&versus=2.3.0."),
    ("attention", "deeper=explain"),
    ("attention", "deeper=take"),
    ("attention", "example=own"),
    ("walk", "show=run"),
    ("walk", "show=run&walk=heads"),
    ("training-step", "show=run"),
    ("training-step", "show=run&stage=loss"),
    ("training-step", "show=run&stage=backward"),
    ("training-step", "show=run&stage=mistakes"),
    ("positions", "show=run"),
    ("masks", "show=run"),
    ("encoders", "view=patches"),
    ("parameters", "show=run"),
    ("build", "show=run"),
    ("words", ""),
    ("speed", "show=run"),
    ("practice", ""),
    ("runs", ""),
)
PEAK = "memory: peak"
"""A goal."""
SAMPLE_SECONDS = 0.02
PATIENCE = 300.0  # seconds: explanations of 784 patches take their time


@dataclass
class Peak:
    """The most memory that was seen, in bytes."""

    rss: int = 0


def tables(*, quick: bool) -> Iterator[Table]:
    """Train the run, look at it on every page, and say what the server took."""
    with tempfile.TemporaryDirectory() as folder:
        run = trained(Path(folder) / "runs", snapshots=3 if quick else 8)
        yield of_snapshots(run)
        yield of_views(Path(folder), run, sessions=1 if quick else 3)


def trained(runs: Path, *, snapshots: int) -> Run:
    """Train a few steps of the model from the command line, into a folder of runs."""
    changes = [*PATCH_1, f"training.snapshots={snapshots}", f"training.steps={2 * snapshots}"]
    command = [sys.executable, "-m", "tfm_core", "train", "--quiet", "--seed", str(SEED)]
    command += [part for change in changes for part in ("--set", change)]
    store = RunStore(runs, recorded=None)
    environment = {**os.environ, "TFM_RUNS_DIR": str(runs)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return store.list()[0]


def of_snapshots(run: Run) -> Table:
    """Say how large a snapshot is."""
    sizes = [path.stat().st_size for path in (run.folder / "snapshots").iterdir()]
    return Table(
        "A snapshot of 32 maps of 785 × 785",
        ["", "MB"],
        [["largest snapshot", _mb(max(sizes))], [f"all {len(sizes)}", _mb(sum(sizes))]],
        [f"{', '.join(PATCH_1)}; seed {SEED}."],
    )


def of_views(folder: Path, run: Run, *, sessions: int) -> Table:
    """Look at every page, a session after the other, and measure the server's resident memory."""
    rows = []
    with serve(folder) as served:
        with visitor(served.url) as first:
            first.visit("")
        before = served.process.memory_info().rss
        with watched(served) as highest:
            for number in range(1, sessions + 1):
                slowest = visits(served, run)
                rss = served.process.memory_info().rss
                words = f"{slowest[0]:.1f} ({slowest[1]})"
                rows.append([f"after session {number}", _mb(rss), words])
        rows.insert(0, ["before", _mb(before), ""])
        rows.append(["peak", _mb(highest.rss), ""])
    log = (folder / "server.log").read_text(errors="replace")
    return Table(
        f"The server's memory, {len(VIEWS)} views of the run a session",
        ["", "MB resident", "slowest view, s"],
        rows,
        [f"Peak {goal_cell(PEAK, highest.rss / 1e6)}.", f"{log.count('Traceback')} pages broke."],
        {PEAK: Figure(highest.rss / 1e6)},
    )


def visits(served: Served, run: Run) -> tuple[float, str]:
    """Open every view in a new session; return the slowest, in seconds, and its name."""
    taken = []
    with visitor(served.url) as asks:
        for page, query in VIEWS:
            seconds = asks.visit(page, f"run={run.id}&{query}".rstrip("&"), patience=PATIENCE)
            taken.append((seconds, f"{page}?{query}".rstrip("?")))
    return max(taken)


@contextmanager
def watched(served: Served) -> Iterator[Peak]:
    """Keep the most resident memory that the server has during the block."""
    peak, is_over = Peak(), threading.Event()

    def watch() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            peak.rss = max(peak.rss, served.process.memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()


def _mb(n: float) -> str:
    return f"{n / 1e6:,.0f}"
