"""The worker: a process that trains a run and writes only into its folder.

``--warm`` imports torch, prints ``ready`` and waits for a line of JSON, ``{"folder": ...}``, on its
standard input. After a run it does so again, unless the run failed or may have left something
behind. It ends when the input closes. ``--run FOLDER`` trains one run at once.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import psutil

from tfm_core.disk import BINARY
from tfm_core.machine import WORKER_NICENESS
from tfm_core.runs import settings
from tfm_core.runs.backends.job import NotItsTurn
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.process.execute import execute, settle
from tfm_core.runs.process.requests import ASKED_TO_END, Control
from tfm_core.runs.queue.claim import RunHeld
from tfm_core.runs.run import Run

HELD_SECONDS = 60.0
"""How long a job waits for its run's claim: a network folder may show its release late."""

MAX_IDLE_BYTES = 2**30
"""A worker that holds more memory ends after its run instead of waiting for the next."""

_LOOK_SECONDS = 0.5


def main(arguments: list[str] | None = None) -> int:
    """Run a worker; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tfm_core.runs.process.worker", description=__doc__
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--warm", action="store_true", help="get ready and wait for a run")
    group.add_argument("--run", type=Path, metavar="FOLDER", help="train the run in this folder")
    parser.add_argument("--max-seconds", type=float, help="stop after so long")
    options = parser.parse_args(arguments)
    if hasattr(os, "nice"):
        os.nice(WORKER_NICENESS)
    if options.run is not None:
        return work(options.run, max_seconds=options.max_seconds)
    warm_up(settings.read().warm_device)
    gc.freeze()  # looking through all that torch holds takes longer than a model's first steps
    orders, answers, errors = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), os.dup(2)
    while True:
        with contextlib.suppress(OSError):  # its server may be gone: then there is no order either
            print("ready", file=answers, flush=True)
        gc.collect()
        line = orders.readline()
        if not line.strip():
            return 0
        order = json.loads(line)
        run = Run(Path(order["folder"]))
        limits = {name: order.get(name) for name in ("max_seconds", "max_pause")}
        code = work(run.folder, **limits)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for output in (1, 2):  # no longer the run's log
            os.dup2(errors, output)
        if code or not _is_like_new(run):
            return code


def _is_like_new(run: Run) -> bool:
    """Return whether the next run will be as after a fresh start, and as quick."""
    return (
        run.status.state in {"finished", "stopped"}
        and run.meta.device == "cpu"
        and not run.experiment.training.compile
        and psutil.Process().memory_info().rss < MAX_IDLE_BYTES
    )


def warm_up(device: str | None = None) -> None:
    """Import all that training needs, and train a step of texts and one of pictures, with a
    snapshot: that pays what only the first costs. Then do so on a device, where one is named.
    """
    settle(threads=1)
    _learn_a_little("cpu")
    if device is None:
        return
    try:
        _learn_a_little(device)
    except (ValueError, RuntimeError) as error:  # a run on it will say so itself
        print(error, file=sys.stderr)


def _learn_a_little(device: str) -> None:
    from tfm_core.config import from_query
    from tfm_core.probe import snapshot
    from tfm_core.training.loop import build, train

    few = {"model.d_model": "8", "task.n_validation": "8", "training.steps": "1"}
    for kind in (
        {"task.name": "copy", "task.size": "2", "task.n_train": "8", "task.n_test": "8"},
        {"model.family": "vit", "training.final_test": "false"},
    ):
        trainer = build(from_query(few | kind), device)
        for _ in train(trainer):
            pass
        snapshot.probe_of(trainer)
        snapshot.take(trainer, 1)


def work(
    folder: Path,
    *,
    max_seconds: float | None = None,
    max_pause: float | None = None,
    job: str | None = None,
) -> int:
    """Train the run in a folder; return 0 when it ended as its status says.

    job: as which job of a cluster. What it says last where it ended otherwise is why, in a
    sentence.
    """
    try:
        return _work(folder, max_seconds=max_seconds, max_pause=max_pause, job=job)
    except (RunHeld, NotItsTurn) as error:
        print(error, file=sys.stderr)
        return 3
    except OSError as error:
        traceback.print_exc()
        print(refusal(error), file=sys.stderr)
        return 1


def _work(
    folder: Path, *, max_seconds: float | None, max_pause: float | None, job: str | None
) -> int:
    _log_to(folder / "worker.log")
    control = Control(folder, max_seconds=max_seconds, max_pause=max_pause)

    def asked_to_end(*_: object) -> None:
        control.stop_reason = ASKED_TO_END

    signal.signal(signal.SIGTERM, asked_to_end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the server
    end = time.monotonic() + (0.0 if job is None else HELD_SECONDS)
    while True:
        try:
            execute(Run(folder), control, job=job)
            return 0
        except RunHeld:
            if time.monotonic() >= end:
                raise
            time.sleep(_LOOK_SECONDS)


def _log_to(path: Path) -> None:
    """Send standard output and error, of C libraries too, to a file; the input is closed."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | BINARY, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(nothing)


if __name__ == "__main__":
    sys.exit(main())
